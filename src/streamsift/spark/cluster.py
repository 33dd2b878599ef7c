"""Compare the Python environments of Spark's executors with the driver's."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from pyspark.errors import PythonException
from pyspark.sql import SparkSession
from pyspark.sql import functions as F  # noqa: N812 (the name that every Spark user knows)

from streamsift.errors import SetupError

PACKAGES = ("streamsift", "pyarrow", "numba", "numpy", "pandas")
_SAME_VERSION = ("streamsift",)  # plans are pickled by the driver and loaded by the executors


@dataclass(frozen=True, slots=True)
class PythonEnvironment:
    """A Python on a host, with the versions of Python and of the packages that a task needs."""

    host: str
    executable: str
    versions: Mapping[str, str]  # without packages that cannot be imported
    failures: Mapping[str, str]  # why packages cannot be imported

    def __str__(self) -> str:
        packages = [f"{name} {self.versions.get(name, 'MISSING')}" for name in ("Python", *PACKAGES)]
        return f"{self.host} ({self.executable}): {', '.join(packages)}"


@dataclass(frozen=True, slots=True)
class ClusterCheck:
    """The result of `check_cluster`. Print it, or call `raise_problems` before a job."""

    driver: PythonEnvironment
    executors: tuple[PythonEnvironment, ...]  # the distinct ones that ran a task of the check

    @property
    def problems(self) -> tuple[str, ...]:
        """Return what makes queries fail on the executors."""
        missing = [
            f"{executor.host} ({executor.executable}) cannot import {name}: {reason}"
            for executor in self.executors
            for name, reason in executor.failures.items()
        ]
        others = [text for name, text in self._differences() if name in _SAME_VERSION]
        return (*missing, *others)

    @property
    def differences(self) -> tuple[str, ...]:
        """Return other differences between executors and driver. Queries usually run despite them."""
        return tuple(text for name, text in self._differences() if name not in _SAME_VERSION)

    def _differences(self) -> list[tuple[str, str]]:
        return [
            (name, f"{executor.host} ({executor.executable}) has {name} {version}, the driver has {ours}")
            for executor in self.executors
            for name, version in executor.versions.items()
            if version != (ours := self.driver.versions.get(name, "no version"))
        ]

    def raise_problems(self) -> None:
        """Raise SetupError if queries would fail on an executor."""
        if self.problems:
            version = self.driver.versions.get("streamsift", "")
            raise SetupError(
                "the Python environments of the Spark executors do not fit the driver's\n"
                + "".join(f"  {problem}\n" for problem in self.problems)
                + f"Hint: install 'streamsift[spark]=={version}' in the executors' Python environment."
            )

    def __str__(self) -> str:
        lines = [f"driver    {self.driver}", *(f"executor  {executor}" for executor in self.executors)]
        lines += [f"problem: {problem}" for problem in self.problems]
        lines += [f"different: {difference}" for difference in self.differences]
        return "\n".join([*lines, *([] if self.problems or self.differences else ["no differences"])])


def check_cluster(spark: SparkSession, tasks: int = 32) -> ClusterCheck:
    """Run small tasks that import what a query needs, and return what they found.

    Spark decides which executors run the tasks. With many executors, use more tasks.
    """
    probe = _probe(PACKAGES)
    # Without Arrow, so that an executor that lacks pyarrow can say so.
    udf = F.udf(lambda _: probe(), "string", useArrow=False)
    try:
        rows = spark.range(0, tasks, 1, tasks).select(udf("id").alias("environment")).distinct().collect()
    except PythonException as error:
        reason = next((line for line in reversed(str(error).splitlines()) if "Error" in line), str(error))
        raise SetupError(f"the Spark executors cannot run the driver's Python functions: {reason.strip()}") from error
    executors = sorted(row.environment for row in rows)
    return ClusterCheck(_environment(probe()), tuple(map(_environment, executors)))


def _probe(packages: tuple[str, ...]) -> Callable[[], str]:
    """Return a function that describes its Python as JSON. Pickled by value: it uses nothing of this module."""

    def probe() -> str:
        import json
        import platform
        import sys
        import time
        from importlib import import_module

        time.sleep(0.05)  # so that one executor does not run all tasks before the others have started
        versions, failures = {"Python": platform.python_version()}, {}
        for name in packages:
            try:
                versions[name] = import_module(name).__version__
            except Exception as error:  # whatever a broken package raises, it is reported
                failures[name] = f"{type(error).__name__}: {error}"
        return json.dumps([platform.node(), sys.executable, versions, failures])

    return probe


def _environment(described: str) -> PythonEnvironment:
    return PythonEnvironment(*json.loads(described))
