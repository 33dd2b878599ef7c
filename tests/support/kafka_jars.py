"""Fetch the jars of a Kafka broker and of Spark's Kafka connector with Maven, once."""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
from functools import cache
from pathlib import Path

POM = Path(__file__).parent / "kafka" / "pom.xml"
CACHE = Path(os.environ.get("XDG_CACHE_HOME", Path.home() / ".cache")) / "streamsift-tests"  # lists of jars, not jars
PATIENCE_SECONDS = 300


class NoJars(Exception):
    """Maven, Java or a repository cannot be reached; the message is the reason that skipped tests show."""


@cache
def broker_jars() -> tuple[Path, ...]:
    if shutil.which("java") is None:
        raise NoJars("a Kafka broker needs Java 17")
    return _jars("broker")


@cache
def connector_jars() -> tuple[Path, ...]:
    """Return the jars of the connector of the installed PySpark, or else of the version that the pom pins."""
    from pyspark import __version__ as version

    try:
        return _jars("connector", f"-Dconnector.version={version}", f"-Dtoken.version={version}")
    except NoJars:
        return _jars("connector")


def _jars(profile: str, *properties: str) -> tuple[Path, ...]:
    name = hashlib.sha256(POM.read_bytes() + " ".join((profile, *properties)).encode()).hexdigest()[:16]
    listed = CACHE / f"{profile}-{name}.txt"
    if listed.exists():
        jars = tuple(map(Path, listed.read_text().split(os.pathsep)))
        if all(jar.exists() for jar in jars):
            return jars
    if shutil.which("mvn") is None:
        raise NoJars("Maven is not installed")
    CACHE.mkdir(parents=True, exist_ok=True)
    words = ["mvn", "-q", "-B", "-f", str(POM), "-P", profile, *properties, "dependency:build-classpath"]
    fetched = CACHE / f"{profile}-{name}.{os.getpid()}"
    done = subprocess.run(
        [*words, f"-Dmdep.outputFile={fetched}"],
        capture_output=True,
        text=True,
        check=False,
        timeout=PATIENCE_SECONDS,
    )
    if done.returncode:
        errors = [line for line in done.stdout.splitlines() if "ERROR" in line]
        raise NoJars(f"Maven cannot fetch the jars: {''.join(errors[:1])[-300:]}")
    fetched.replace(listed)
    return tuple(map(Path, listed.read_text().strip().split(os.pathsep)))
