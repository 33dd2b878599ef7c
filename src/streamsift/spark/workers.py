"""Send functions to Spark's Python workers such that their errors reach the user in plain words.

Spark reports an exception of a worker with the worker's traceback before its message. An error of Streamsift is sent
without the traceback, so that its message comes first. A worker whose Python lacks Streamsift could not even unpickle a
function of this package, so a function is sent as bytes, inside a function that needs no other module.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, TypeVar

import pyarrow as pa
import pyspark
from pyspark import cloudpickle

from streamsift.errors import SetupError, StreamsiftError

T = TypeVar("T")
Batches = Iterator[pa.RecordBatch]

# Spark sets it for a session with spark.sql.execution.pyspark.udf.hideTraceback.enabled. It is set here only in a
# worker that is about to fail, and a worker ends when a task of it fails.
HIDE_TRACEBACK = "SPARK_HIDE_TRACEBACK"


OLDEST = (4, 0)


def check_version(version: str) -> None:
    """Raise SetupError if this PySpark is too old."""
    major, minor = (int(part) for part in version.split(".")[:2])
    if (major, minor) < OLDEST:
        raise SetupError(
            f"PySpark {version} is not supported\n"
            "Hint: use PySpark 4.0 or newer, or run_local() on an Arrow or pandas table."
        )


check_version(pyspark.__version__)  # when imported, before what older versions lack is imported


@contextmanager
def plain_errors() -> Iterator[None]:
    """Make Spark report an error of Streamsift by its message alone. Other errors keep their tracebacks."""
    try:
        yield
    except StreamsiftError:
        os.environ[HIDE_TRACEBACK] = "1"
        raise


def for_workers(function: Callable[[Batches], Batches]) -> Callable[[Batches], Batches]:
    """Return the function for `mapInArrow`, with errors for users."""
    load = loader(function)

    def run(batches: Batches) -> Batches:
        work, errors = load()
        with errors():
            yield from work(batches)

    return run


def loader(function: T) -> Callable[[], tuple[T, Any]]:
    """Return a function that loads another one in a worker, with `plain_errors`, or says what the worker lacks.

    It is pickled by value: its body may not use anything of this module.
    """
    payload, version, variable = cloudpickle.dumps(function), _version(), HIDE_TRACEBACK  # type: ignore[no-untyped-call]

    def load() -> tuple[T, Any]:
        import os
        import sys
        from importlib import import_module

        try:
            workers = import_module("streamsift.spark.workers")
            return workers.loaded(payload, version), workers.plain_errors
        except ImportError as error:
            os.environ[variable] = "1"
            raise ImportError(
                f"the Python of a Spark executor cannot import Streamsift: {error} ({sys.executable})\n"
                f"Hint: install 'streamsift[spark]=={version}' in the executors' Python environment; "
                "ss.check_cluster(spark) shows what is missing."
            ) from None

    return load


def loaded(payload: bytes, version: str) -> Any:
    """Return the function in a payload of the driver, which has this version of Streamsift."""
    with plain_errors():
        if _version() != version:
            raise SetupError(
                f"a Spark executor has Streamsift {_version()}, but the driver has {version}\n"
                "Hint: install the same version in both Python environments."
            )
    return cloudpickle.loads(payload)


def _version() -> str:
    # Not `import streamsift`: that imports the layers above this one.
    return sys.modules["streamsift"].__version__
