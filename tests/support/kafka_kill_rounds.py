"""Kill the driver, a Python worker or the Kafka broker of a stream at random, and compare its rows with a batch run.

    python tests/support/kafka_kill_rounds.py --rounds 20

A round is one kill. The stream reads a topic with three partitions, one of which is idle, and writes Parquet files or
another topic. After each kill it restarts from its checkpoint. At the end, the files must contain each row of the batch
query exactly once. The topic must contain each row at least once: Spark's Kafka sink may repeat a micro-batch.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import shutil
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from pathlib import Path
from typing import Any

import kill_rounds
from kafka_broker import Broker
from kafka_jars import connector_jars

ROWS, ROWS_PER_TRIGGER, LATENESS = 2400, 300, 300
END = {"t": 10**6, "kind": "-", "id": 0, "x": 0.0, "seq": 10**6}  # advances the watermark past all matches


def send_events(broker: Broker, topic: str, seed: int) -> None:
    """Append events to two partitions, by key. Spark reads about as many rows of both."""
    chance = random.Random(seed)
    by_partition: list[list[dict[str, Any]]] = [[], []]
    for i in range(ROWS):
        key = chance.randrange(20)
        kind, x = chance.choice("ABC"), float(chance.randrange(50))
        by_partition[key % 2].append({"t": i // 2, "kind": kind, "id": key, "x": x, "seq": i})
    for partition, rows in enumerate(by_partition):
        broker.send(topic, rows, key="id", partition=partition)


# --- the stream, in its own process --------------------------------------------------------------------------------


def run_stream(directory: Path, text: str, master: str, servers: str, sink: str) -> None:
    from confluent_kafka import Producer
    from pyspark.sql import SparkSession
    from pyspark.sql import functions as F  # noqa: N812 (the name that every Spark user knows)

    import fast_spark
    import streamsift as ss

    fast_spark.prepare()
    os.environ["PYSPARK_PYTHON"] = sys.executable
    settings = {"spark.ui.enabled": "false", "spark.sql.shuffle.partitions": "2", "spark.log.level": "OFF"}
    settings |= fast_spark.SETTINGS | {"spark.jars": ",".join(map(str, connector_jars()))}
    builder = SparkSession.builder.master(master)
    for key, value in settings.items():
        builder = builder.config(key, value)
    spark = builder.getOrCreate()
    query, location = ss.query(text), f"kafka://{servers}/in"
    limited = f"{location}?maxOffsetsPerTrigger={ROWS_PER_TRIGGER}"
    events = ss.read_topic(spark, limited, kill_rounds.COLUMNS)
    result = query.run(events, lateness=LATENESS, **kill_rounds.BINDING)
    lines = result.select(F.to_json(F.struct("*")).alias("value"))
    if sink == "topic":
        writer = lines.writeStream.format("kafka").option("kafka.bootstrap.servers", servers).option("topic", "out")
    else:
        writer = result.writeStream.format("parquet").option("path", str(directory / "out"))
    writer = writer.option("checkpointLocation", str(directory / "checkpoint"))
    late = 0
    for _ in range(2):  # all events, then the one that advances the watermark
        print("batch", flush=True)
        stream, done = writer.trigger(availableNow=True).start(), -1
        while not stream.awaitTermination(1):
            progress = stream.lastProgress
            if progress is not None and progress["batchId"] > done:
                done = progress["batchId"]
                print("batch", flush=True)
        late += ss.metrics(stream).late
        producer = Producer({"bootstrap.servers": servers})
        producer.produce("in", json.dumps(END).encode(), partition=0)
        producer.flush(60)
    batch = query.run(ss.read_topic(spark, location, kill_rounds.COLUMNS, streaming=False), **kill_rounds.BINDING)
    expected = Counter(row.value for row in batch.select(F.to_json(F.struct("*")).alias("value")).collect())
    if sink == "topic":
        records = spark.read.format("kafka").option("kafka.bootstrap.servers", servers).option("subscribe", "out")
        emitted = Counter(row.value for row in records.load().selectExpr("CAST(value AS STRING) AS value").collect())
        is_right = set(emitted) == set(expected) and all(emitted[row] >= expected[row] for row in expected)
    else:
        rows = spark.read.schema(result.schema).parquet(str(directory / "out"))
        emitted = Counter(row.value for row in rows.select(F.to_json(F.struct("*")).alias("value")).collect())
        is_right = emitted == expected
    print(f"finished {sink} {emitted.total()} {expected.total()} {late} {is_right}", flush=True)


# --- the killer ----------------------------------------------------------------------------------------------------


def attempt(directory: Path, text: str, sink: str, broker: Broker, chance: random.Random) -> tuple[str, str | None]:
    """Start the stream once and kill something; return what was killed, and the last line of a stream that finished."""
    master = chance.choice(["local[2]", "local[2,4]"])  # without and with retries of tasks
    arguments = [sys.executable, __file__, "--stream", str(directory), "--query", text, "--master", master]
    arguments += ["--servers", broker.servers, "--sink", sink]
    victim, killed, batches = chance.choice(["broker", "stream", "stream"]), "nothing", chance.choice([1, 2, 3])
    with (
        (directory / kill_rounds.ERRORS).open("w") as errors,
        subprocess.Popen(arguments, stdout=subprocess.PIPE, stderr=errors, text=True) as stream,
    ):
        assert stream.stdout is not None
        watch = threading.Timer(kill_rounds.PATIENCE_SECONDS, kill_rounds.kill_all, [stream.pid])
        watch.start()
        try:
            for line in stream.stdout:
                if line.startswith("finished"):
                    return killed, line.strip()
                batches -= 1
                if batches == 0:
                    time.sleep(chance.uniform(0, 3))
                    if victim == "broker":
                        broker.kill()
                        time.sleep(chance.uniform(0, 2))
                        broker.start()
                        killed = "the broker"
                    else:
                        killed = kill_rounds.kill_something(stream.pid, chance)
        finally:
            watch.cancel()
            kill_rounds.kill_all(stream.pid)
    return killed, None


def rounds(count: int, seed: int) -> None:
    chance, done = random.Random(seed), 0
    while done < count:
        directory = Path(tempfile.mkdtemp(prefix="streamsift-kafka-kill-"))
        text, sink, ending, failures = chance.choice(kill_rounds.QUERIES), chance.choice(["files", "topic"]), None, 0
        if done == 0:
            sink = "files"
        broker = Broker(directory)
        try:
            broker.start()
            broker.create("in", 3)
            broker.create("out", 2)
            send_events(broker, "in", chance.randrange(10**6))
            while ending is None:
                killed, ending = attempt(directory, text, sink, broker, chance)
                done += killed != "nothing"
                failures += killed == "nothing" and ending is None
                log = (directory / kill_rounds.ERRORS).read_text()[-3000:]
                assert failures < kill_rounds.MOST_FAILURES, f"{directory}: {text}: ended without a kill\n{log}"
                print(f"round {done}: killed {killed}{'' if ending is None else '; ' + ending}", flush=True)
        finally:
            broker.kill()
        assert ending.endswith(" 0 True"), f"{directory}: {text}: {ending}"
        shutil.rmtree(directory)
    print(f"{done} kills: every sink contains the rows of the batch query")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=20)
    parser.add_argument("--seed", type=int, default=1)
    for name in ("--query", "--master", "--servers", "--sink"):
        parser.add_argument(name, help=argparse.SUPPRESS)
    parser.add_argument("--stream", type=Path, help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.stream is not None:
        run_stream(given.stream, given.query, given.master, given.servers, given.sink)
    else:
        rounds(given.rounds, given.seed)


if __name__ == "__main__":
    main()
