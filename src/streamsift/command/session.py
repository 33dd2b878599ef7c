"""Start a Spark session, or raise an error that says what the machine lacks."""

from __future__ import annotations

import os
import shutil
from pathlib import Path
from typing import TYPE_CHECKING

from rich.console import Console

from streamsift.command.progress import progress
from streamsift.errors import SetupError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

OTHERWISE = "or run it without Spark: --engine local."


def start_spark(console: Console, master: str | None, name: str = "streamsift") -> SparkSession:
    """Start a session. Raise SetupError at once if Java or pyspark is missing."""
    check_java()
    try:
        from streamsift.spark.files import local_session
    except ModuleNotFoundError as error:
        missing = (error.name or "pyspark").split(".")[0]
        raise SetupError(
            f"Spark needs the package {missing}, which is not installed\n"
            f"Hint: pip install 'streamsift[spark]', {OTHERWISE}"
        ) from error
    with progress(console, "starting Spark"):
        return local_session(master, name)


def check_java() -> None:
    """Raise if there is no Java where Spark looks for it. Its version is left to Spark."""
    directory = os.environ.get("JAVA_HOME")
    if directory and not (Path(directory) / "bin" / "java").exists():
        raise SetupError(
            f"there is no Java at JAVA_HOME={directory}\n"
            f"Hint: set JAVA_HOME to the directory of a Java 17 or newer, unset it to use the one on PATH, {OTHERWISE}"
        )
    if not directory and shutil.which("java") is None:
        raise SetupError(
            "Spark needs Java 17 or newer, and there is no `java` on PATH\n"
            f"Hint: install one (Debian: apt-get install openjdk-17-jre-headless), {OTHERWISE}"
        )
