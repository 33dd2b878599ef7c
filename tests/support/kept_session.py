"""Give commands that run in the tests' process a Spark session with the command line's settings."""

from __future__ import annotations

from typing import Any

from pyspark.sql import SparkSession

from streamsift.spark.files.sources import LOCAL_SETTINGS


class Kept:
    """The session of all tests, which no command stops: to start one takes longer than what it runs."""

    def __init__(self, session: SparkSession) -> None:
        self._session = session

    def __getattr__(self, name: str) -> Any:
        return getattr(self._session, name)

    def stop(self) -> None:
        pass


def as_command_line(session: SparkSession) -> Kept:
    """Return a session beside `session`, in the same Spark, with the settings that the command line gives its own."""
    beside = session.newSession()
    for key, value in LOCAL_SETTINGS.items():
        if key.startswith("spark.sql."):
            beside.conf.set(key, value)
    return Kept(beside)
