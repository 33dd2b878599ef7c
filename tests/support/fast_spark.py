"""Settings that save the tests' Spark processor time and change no result."""

from __future__ import annotations

import os
from pathlib import Path

# A JVM of a test lives for minutes and runs small jobs: to optimize its code takes longer than to run it.
JVM_OPTIONS = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"
# Workers are forked from a process that has imported all they need (`warm_daemon.py`).
SETTINGS = {"spark.python.daemon.module": "warm_daemon"}


def prepare() -> None:
    """Set up the environment of every JVM that this process or a child starts, and of its Python workers."""
    os.environ.setdefault("SPARK_SUBMIT_OPTS", JVM_OPTIONS)
    os.environ.setdefault("SPARK_DAEMON_JAVA_OPTS", JVM_OPTIONS)
    paths = os.environ.get("PYTHONPATH", "").split(os.pathsep)
    if (support := str(Path(__file__).parent)) not in paths:
        os.environ["PYTHONPATH"] = os.pathsep.join([support, *filter(None, paths)])
