"""Fork Spark's Python workers from a daemon that has imported their modules, which saves 1.6 s of CPU time per worker.

Test sessions set it as `spark.python.daemon.module`. It only imports before a fork, so that no thread is lost.
"""

from __future__ import annotations

import numba  # noqa: F401
import pandas  # noqa: F401
from pyspark import daemon, worker  # noqa: F401

import streamsift.spark.batch.task
import streamsift.spark.stream.stateful  # noqa: F401

if __name__ == "__main__":
    daemon.manager()
