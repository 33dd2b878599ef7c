"""SIGKILL in, the batch answer out: a stream whose driver or Python worker is killed at random moments, and restarted.

    python tests/support/kill_rounds.py --rounds 50

A round is one kill. The stream reads files and writes files; after each kill it is started again from its checkpoint.
When it has read everything, its sink must hold the rows of the batch query: nothing lost, nothing twice.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

QUERIES = (
    "PATTERN SEQ(A a, B b, !C c) WHERE [id] AND a.x <= b.x WITHIN 40",
    "PATTERN SEQ(A a, B b) WHERE [id] GROUP BY id AGG COUNT, SUM(b.x) WITHIN 60 UPDATE 25",
    "PATTERN SEQ(A a, B b) WHERE [id] AGG COUNT, MAX(b.x) WITHIN 60",
    "PATTERN SEQ(A a, B b) PREF MAX[a.x + b.x] WITHIN 30 UPDATE 40 RETURN 3",
)
COLUMNS = "t bigint, kind string, id int, x double, seq bigint"
BINDING = {"time": "t", "type": "kind", "order": "seq"}
FILES, ROWS_PER_FILE, LATENESS = 16, 200, 8
PATIENCE_SECONDS = 300
ERRORS = "errors.txt"
MOST_FAILURES = 3  # of one stream, without a kill: a machine with too much to do breaks off connections


def write_events(directory: Path, seed: int, files: int) -> None:
    """Files in order; rows in disorder inside the lateness; at the end a row that lets time pass."""
    chance = random.Random(seed)
    rows = [
        {
            "t": i // 2,
            "kind": chance.choice("ABC"),
            "id": chance.randrange(20),
            "x": float(chance.randrange(50)),
            "seq": i,
        }
        for i in range(files * ROWS_PER_FILE)
    ]
    rows.sort(key=lambda row: row["t"] + chance.randrange(LATENESS))
    parts = [rows[i : i + ROWS_PER_FILE] for i in range(0, len(rows), ROWS_PER_FILE)]
    for number, part in enumerate([*parts, [{"t": 10**6, "kind": "-", "id": 0, "x": 0.0, "seq": 10**6}]]):
        path = directory / f"{number:04}.json"
        path.write_text("".join(json.dumps(row) + "\n" for row in part))
        os.utime(path, (number + 10**9, number + 10**9))  # Spark takes the oldest file first


# --- the stream, in a process of its own ---------------------------------------------------------------------------


def run_stream(directory: Path, text: str, master: str) -> None:
    from pyspark.sql import SparkSession

    import fast_spark
    import streamsift as ss

    fast_spark.prepare()
    os.environ["PYSPARK_PYTHON"] = sys.executable
    settings = {"spark.ui.enabled": "false", "spark.sql.shuffle.partitions": "2", "spark.log.level": "OFF"}
    settings |= fast_spark.SETTINGS
    builder = SparkSession.builder.master(master)
    for key, value in settings.items():
        builder = builder.config(key, value)
    spark = builder.getOrCreate()
    query, source = ss.query(text), str(directory / "in")
    events = spark.readStream.schema(COLUMNS).option("maxFilesPerTrigger", 1).json(source)
    result = query.run(events, lateness=LATENESS, **BINDING)
    writer = result.writeStream.format("parquet").option("path", str(directory / "out"))
    stream = writer.option("checkpointLocation", str(directory / "checkpoint")).trigger(availableNow=True).start()
    done = -1
    print("batch", flush=True)
    while not stream.awaitTermination(1):
        progress = stream.lastProgress
        if progress is not None and progress["batchId"] > done:
            done = progress["batchId"]
            print("batch", flush=True)
    expected = sorted(map(str, query.run(spark.read.schema(COLUMNS).json(source), **BINDING).collect()))
    found = sorted(map(str, spark.read.schema(result.schema).parquet(str(directory / "out")).collect()))
    late = ss.metrics(stream).late
    print(f"finished {len(found)} {len(expected)} {late} {found == expected}", flush=True)


# --- the one that kills --------------------------------------------------------------------------------------------


def descendants(process: int) -> Iterator[tuple[int, str]]:
    """The processes below this one, with their command lines."""
    listed = subprocess.run(["ps", "-eo", "pid,ppid,args"], capture_output=True, text=True, check=True).stdout
    lines = [line.split(None, 2) for line in listed.splitlines()[1:]]
    below = {process}
    for pid, parent, *arguments in sorted(lines, key=lambda line: int(line[0])):
        if int(parent) in below:
            below.add(int(pid))
            yield int(pid), " ".join(arguments)


def workers_below(process: int) -> list[int]:
    """The Python workers below this process. Spark has a daemon for each environment, and workers below each daemon."""
    daemons = [pid for pid, command in descendants(process) if "daemon pyspark." in command]
    return [pid for pid in daemons if any(other in daemons for other in parents(pid))]


def parents(process: int) -> list[int]:
    listed = subprocess.run(["ps", "-o", "ppid=", "-p", str(process)], capture_output=True, text=True, check=False)
    return [int(pid) for pid in listed.stdout.split()]


def kill_something(process: int, chance: random.Random) -> str:
    """SIGKILL for a Python worker, or for the driver with its JVM: only processes that this one has started."""
    workers = workers_below(process)
    if workers and chance.random() < 0.5:
        os.kill(chance.choice(workers), signal.SIGKILL)
        return "a Python worker"
    kill_all(process)
    return "the driver"


def kill_all(process: int) -> None:
    for pid in [*(pid for pid, _ in descendants(process)), process]:
        with suppress(ProcessLookupError):  # it has ended meanwhile
            os.kill(pid, signal.SIGKILL)


def attempt(directory: Path, text: str, chance: random.Random, kill: bool) -> tuple[str | None, str | None]:
    """One start of the stream: what was killed, and its last line if it came to its end."""
    master = chance.choice(["local[2]", "local[2,4]"])  # without and with retries of tasks
    arguments = [sys.executable, __file__, "--stream", str(directory), "--query", text, "--master", master]
    with (
        (directory / ERRORS).open("w") as errors,
        subprocess.Popen(arguments, stdout=subprocess.PIPE, stderr=errors, text=True) as stream,
    ):
        assert stream.stdout is not None
        killed, batches = None, chance.choice([0, 1, 1, 2, 2, 3]) if kill else -1
        try:
            for line in stream.stdout:
                if line.startswith("finished"):
                    stream.wait(PATIENCE_SECONDS)
                    return killed, line.strip()
                if line.startswith("batch"):
                    if batches == 0:
                        time.sleep(chance.uniform(0, 4))
                        killed = kill_something(stream.pid, chance)
                    batches -= 1
        finally:
            kill_all(stream.pid)
    return killed, None


def rounds(count: int, seed: int, files: int = FILES) -> None:
    chance = random.Random(seed)
    done = 0
    while done < count:
        directory = Path(tempfile.mkdtemp(prefix="streamsift-kill-"))
        (directory / "in").mkdir()
        write_events(directory / "in", chance.randrange(10**6), files)
        text, ending, failures = QUERIES[chance.randrange(len(QUERIES))], None, 0
        while ending is None:
            killed, ending = attempt(directory, text, chance, kill=done < count)
            done += killed is not None
            if killed is None and ending is None:
                failures += 1
                told = (directory / ERRORS).read_text()[-3000:]
                assert failures < MOST_FAILURES, f"{directory}: {text}: it ends though nothing is killed\n{told}"
            print(f"round {done}: killed {killed or 'nothing'}{'' if ending is None else '; ' + ending}", flush=True)
        assert ending.endswith(" 0 True"), f"{directory}: {text}: {ending}"
        shutil.rmtree(directory)
    print(f"{done} kills: every sink holds exactly the rows of the batch query")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=50)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--stream", type=Path, help=argparse.SUPPRESS)
    parser.add_argument("--query", help=argparse.SUPPRESS)
    parser.add_argument("--master", help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.stream is not None:
        run_stream(given.stream, given.query, given.master)
    else:
        rounds(given.rounds, given.seed)


if __name__ == "__main__":
    main()
