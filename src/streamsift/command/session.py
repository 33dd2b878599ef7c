"""Start a Spark session, or report which requirement is missing."""

from __future__ import annotations

import os
import re
import shutil
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from rich.console import Console
from rich.text import Text

from streamsift.api import check_cluster
from streamsift.command.progress import progress
from streamsift.errors import SetupError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

STDERR = 2
LOCAL_MASTER = re.compile(r"local(\[.*\])?")  # Spark's processes are this machine's and use this Python
# Blank lines, a warning of the JVM, and the progress of pyspark's streaming workers.
CHATTER = re.compile(r"\s*$|WARNING: Using incubator modules|(Starting )?Streaming \w+ Python worker")
OTHERWISE = "or run without Spark: --engine local."


def start_spark(
    console: Console,
    master: str | None,
    name: str = "streamsift",
    muted: threading.Event | None = None,
    packages: str | None = None,
) -> SparkSession:
    """Start a session; raise SetupError at once if Java or pyspark is missing.

    Output of Spark's processes on stderr is discarded once `muted` is set.
    """
    check_java()
    try:
        from streamsift.spark.files import local_session
    except ModuleNotFoundError as error:
        missing = (error.name or "pyspark").split(".")[0]
        raise SetupError(
            f"Spark requires the package {missing}, which is not installed\n"
            f"Hint: pip install 'streamsift[spark]', {OTHERWISE}"
        ) from error
    with relay_stderr(console, muted or threading.Event()), progress(console, "starting Spark"):
        spark = local_session(master, name, packages)
    if master is not None and not LOCAL_MASTER.fullmatch(master):
        _check_executors(console, spark)
    return spark


def _check_executors(console: Console, spark: SparkSession) -> None:
    """Raise SetupError if the executors' Python cannot run queries; warn of other differences from this Python."""
    try:
        with progress(console, "checking the executors"):
            check = check_cluster(spark)
        for difference in check.differences:
            console.print(f"warning: {difference}", highlight=False, markup=False, soft_wrap=True)
        check.raise_problems()
    except BaseException:
        spark.stop()
        raise


def check_java() -> None:
    """Raise if there is no Java where Spark looks for it. Spark itself checks the version."""
    directory = os.environ.get("JAVA_HOME")
    if directory and not (Path(directory) / "bin" / "java").exists():
        raise SetupError(
            f"JAVA_HOME does not contain Java: {directory}\n"
            f"Hint: set JAVA_HOME to a Java 17 or newer, unset it to use `java` on PATH, {OTHERWISE}"
        )
    if not directory and shutil.which("java") is None:
        raise SetupError(
            "Spark requires Java 17 or newer, and there is no `java` on PATH\n"
            f"Hint: install Java (Debian: apt-get install openjdk-17-jre-headless), {OTHERWISE}"
        )


@contextmanager
def relay_stderr(console: Console, muted: threading.Event) -> Iterator[None]:
    """Print what processes started inside write to stderr above the console's live display, until `muted` is set.

    Written to the terminal directly, it would overwrite progress bars and tables. After an interrupt it is noise: the
    JVM reports failed threads at any log level, and Python workers report the interrupt. The relay goes on after the
    context, for as long as the processes run. Lines of `CHATTER` are always discarded.
    """
    kept = os.dup(STDERR)
    reader, writer = os.pipe()
    before, ours = sys.stderr, os.fdopen(os.dup(kept), "w", buffering=1, errors="backslashreplace")
    sys.stderr = ours
    os.dup2(writer, STDERR)
    os.close(writer)
    threading.Thread(target=_relay, args=(reader, console, muted), daemon=True).start()
    try:
        yield
    finally:
        sys.stderr = before
        ours.close()
        os.dup2(kept, STDERR)
        os.close(kept)


def _relay(reader: int, console: Console, muted: threading.Event) -> None:
    """Copy lines until every process has closed its end of the pipe."""
    with os.fdopen(reader, "r", errors="replace") as source:
        for line in source:
            if not muted.is_set() and not CHATTER.match(line):
                console.print(Text(line.rstrip("\n")), soft_wrap=True)
