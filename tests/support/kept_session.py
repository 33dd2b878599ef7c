"""Give commands that run in the tests' process a Spark session with the command line's settings."""

from __future__ import annotations

from typing import Any

from pyspark.sql import SparkSession

from streamsift.spark.files.sources import LOCAL_SETTINGS


class Kept:
    """The session of all tests. `stop` does nothing, because starting a session takes longer than most commands."""

    def __init__(self, session: SparkSession) -> None:
        self._session = session

    def __getattr__(self, name: str) -> Any:
        return getattr(self._session, name)

    def stop(self) -> None:
        pass


def as_command_line(session: SparkSession) -> Kept:
    """Return a new session of the same Spark application, with the settings of the command line."""
    beside = session.newSession()
    for key, value in LOCAL_SETTINGS.items():
        if key.startswith("spark.sql."):
            beside.conf.set(key, value)
    return Kept(beside)
