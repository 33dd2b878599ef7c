"""Fork Spark's Python workers from a daemon that has imported all they need, which saves each 1.6 s of processor time.

The sessions of the tests name it in `spark.python.daemon.module`. Nothing is run before a fork: no thread is lost.
"""

from __future__ import annotations

import numba  # noqa: F401
import pandas  # noqa: F401
from pyspark import daemon, worker  # noqa: F401

import streamsift.spark.batch.task
import streamsift.spark.stream.stateful  # noqa: F401

if __name__ == "__main__":
    daemon.manager()
