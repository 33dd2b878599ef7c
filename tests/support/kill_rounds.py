"""Kill the driver or a Python worker of a stream at random moments, restart it, and compare its rows with a batch run.

    python tests/support/kill_rounds.py --rounds 50

A round is one kill. The stream reads files and writes files; after each kill it restarts from its checkpoint. After
the last file, the sink must contain each row of the batch query exactly once.
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
MOST_FAILURES = 3  # per stream, without a kill: an overloaded machine drops connections


def write_events(directory: Path, seed: int, files: int) -> None:
    """Write files in order, with rows out of order within the lateness, and a last row that advances the watermark."""
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


# --- the stream, in its own process --------------------------------------------------------------------------------


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


# --- the killer ----------------------------------------------------------------------------------------------------


def descendants(process: int) -> Iterator[tuple[int, str]]:
    """Yield the descendants of a process, with their command lines."""
    listed = subprocess.run(["ps", "-eo", "pid,ppid,args"], capture_output=True, text=True, check=True).stdout
    lines = [line.split(None, 2) for line in listed.splitlines()[1:]]
    below = {process}
    for pid, parent, *arguments in sorted(lines, key=lambda line: int(line[0])):
        if int(parent) in below:
            below.add(int(pid))
            yield int(pid), " ".join(arguments)


def workers_below(process: int) -> list[int]:
    """Return the Python workers of a process. Spark has one daemon per environment, and each daemon has workers."""
    daemons = [pid for pid, command in descendants(process) if "daemon pyspark." in command]
    return [pid for pid in daemons if any(other in daemons for other in parents(pid))]


def parents(process: int) -> list[int]:
    listed = subprocess.run(["ps", "-o", "ppid=", "-p", str(process)], capture_output=True, text=True, check=False)
    return [int(pid) for pid in listed.stdout.split()]


def kill_something(process: int, chance: random.Random) -> str:
    """Send SIGKILL to a Python worker, or to the driver and its JVM; only to processes that this one has started."""
    workers = workers_below(process)
    if workers and chance.random() < 0.5:
        os.kill(chance.choice(workers), signal.SIGKILL)
        return "a Python worker"
    kill_all(process)
    return "the driver"


def kill_all(process: int) -> None:
    for pid in [*(pid for pid, _ in descendants(process)), process]:
        with suppress(ProcessLookupError):  # the process has ended
            os.kill(pid, signal.SIGKILL)


def attempt(directory: Path, text: str, chance: random.Random, kill: bool) -> tuple[str | None, str | None]:
    """Start the stream once; return what was killed, and the stream's last line if it finished."""
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
                log = (directory / ERRORS).read_text()[-3000:]
                assert failures < MOST_FAILURES, f"{directory}: {text}: the stream ended without a kill\n{log}"
            print(f"round {done}: killed {killed or 'nothing'}{'' if ending is None else '; ' + ending}", flush=True)
        assert ending.endswith(" 0 True"), f"{directory}: {text}: {ending}"
        shutil.rmtree(directory)
    print(f"{done} kills: every sink contains exactly the rows of the batch query")


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
