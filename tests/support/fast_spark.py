"""Configure Spark to use less CPU time in tests, without changing results."""

from __future__ import annotations

import os
from pathlib import Path

# The JVM of a test runs small jobs for a few minutes: optimizing its code takes longer than running it.
JVM_OPTIONS = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"
# Fork workers from a process that has already imported their modules (`warm_daemon.py`).
SETTINGS = {"spark.python.daemon.module": "warm_daemon"}
AS_PROPERTIES = " ".join(f"-D{name}={value}" for name, value in SETTINGS.items())


def prepare() -> None:
    """Set up the environment of every JVM that this process or a child starts, and of its Python workers."""
    os.environ.setdefault("SPARK_SUBMIT_OPTS", f"{JVM_OPTIONS} {AS_PROPERTIES}")
    os.environ.setdefault("SPARK_DAEMON_JAVA_OPTS", JVM_OPTIONS)
    paths = os.environ.get("PYTHONPATH", "").split(os.pathsep)
    if (support := str(Path(__file__).parent)) not in paths:
        os.environ["PYTHONPATH"] = os.pathsep.join([support, *filter(None, paths)])
