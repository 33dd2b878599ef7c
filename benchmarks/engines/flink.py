"""Run a workload on Flink, with the jars of apache-flink-libraries on PyPI and a small Java driver.

The jars are not a dependency of this project. They are downloaded once into a cache, or read from FLINK_LIB. The Java
driver counts and hashes Flink's rows in its own process. It measures from the first event to the last row, without
starting the cluster.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import IO

import numpy as np

from benchmarks.engines.question import Kind, Question
from benchmarks.harness.answers import Answer
from benchmarks.harness.clock import Taken
from benchmarks.harness.experiment import Contender, Side, Skipped

VERSION = "2.3.0"
NAME = "Flink CEP"
CACHE = Path(os.environ.get("XDG_CACHE_HOME", Path.home() / ".cache")) / "streamsift-benchmarks"
SOURCES = Path(__file__).parent / "flink"
OPTIONS = [
    "-Xmx4g",
    *(f"--add-opens=java.base/java.{name}=ALL-UNNAMED" for name in ("lang", "util", "time")),
]
RECOGNIZED = (Kind.NEXT,)  # MATCH_RECOGNIZE supports only this workload: it finds one match per first row


class Unavailable(Exception):
    """Flink cannot run on this machine; the message is the reason that the report shows."""


class Flink:
    """A warm Java process for all workloads, stopped at the end of the `with` block."""

    def __init__(self, cores: int, folder: Path) -> None:
        self.cores, self.folder = cores, folder
        libraries = _libraries()
        classes = _compiled(libraries, folder)
        class_path = os.pathsep.join([str(classes), *map(str, libraries)])
        self.process = subprocess.Popen(
            ["java", *OPTIONS, "-cp", class_path, "Driver"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=(folder / "flink.log").open("w"),
            text=True,
        )

    def __enter__(self) -> Flink:
        return self

    def __exit__(self, *_: object) -> None:
        _pipe(self.process.stdin).close()  # the driver exits at the end of its input
        self.process.wait(60)

    def contenders(self, question: Question) -> Iterator[Contender]:
        tape = self._tape(question)
        yield self._contender(NAME, "cep", question, tape)
        if question.kind in RECOGNIZED:
            yield self._contender("Flink SQL MATCH_RECOGNIZE", "sql", question, tape)

    def _contender(self, name: str, interface: str, question: Question, tape: Path) -> Contender:
        line = f"{interface} {question.kind} {question.window_ms} {self.cores} {tape}"
        return Contender(name, Side.RIVAL, lambda: self._ask(line)[0], lambda: self._ask(line)[1])

    def _ask(self, line: str) -> tuple[Answer, Taken]:
        print(line, file=_pipe(self.process.stdin), flush=True)
        for reply in _pipe(self.process.stdout):
            if reply.startswith("answer "):
                rows, digest, wall_s, cpu_s = reply.split()[1:]
                return Answer(int(rows), int(digest)), Taken(float(wall_s), float(cpu_s))
        log = (self.folder / "flink.log").read_text()[-2000:]
        raise RuntimeError(f"Flink exited without a result for `{line}`:\n{log}")

    def _tape(self, question: Question) -> Path:
        """Write the events in the format of the Java driver; see Tape.java."""
        path = self.folder / f"{question.kind}_{question.window_ms}_{question.events.num_rows}.tape"
        column = question.events.column
        codes = [ord(name) - ord("A") for name in column("kind").to_pylist()]
        with path.open("wb") as file:
            file.write(np.int64(question.events.num_rows).tobytes())
            file.write(column("t").to_numpy().astype("<i8").tobytes())
            file.write(column("key").to_numpy().astype("<i4").tobytes())
            file.write(np.array(codes, np.int8).tobytes())
        return path


def skipped(reason: Unavailable) -> Skipped:
    return Skipped(NAME, str(reason))


def _pipe(stream: IO[str] | None) -> IO[str]:
    assert stream is not None
    return stream


def _libraries() -> list[Path]:
    """Return the jars, except for logging, so that Flink prints nothing."""
    if shutil.which("java") is None or shutil.which("javac") is None:
        raise Unavailable("no `java` and `javac` on PATH")
    folder = Path(os.environ.get("FLINK_LIB") or CACHE / f"flink-{VERSION}" / "pyflink" / "lib")
    if not folder.exists() and "FLINK_LIB" not in os.environ:
        _download()
    jars = [path for path in sorted(folder.glob("*.jar")) if not path.name.startswith("log4j")]
    if not jars:
        raise Unavailable(f"no jars in {folder}")
    return jars


def _download() -> None:
    print(f"downloading apache-flink-libraries {VERSION} (330 MB, once) to {CACHE}", flush=True)
    CACHE.mkdir(parents=True, exist_ok=True)
    words = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--dest", str(CACHE)]
    done = subprocess.run([*words, f"apache-flink-libraries=={VERSION}"], capture_output=True, text=True, check=False)
    if done.returncode:
        raise Unavailable(f"apache-flink-libraries {VERSION} cannot be downloaded: {done.stderr.strip()[-200:]}")
    (wheel,) = CACHE.glob(f"apache_flink_libraries-{VERSION}*.whl")
    with zipfile.ZipFile(wheel) as archive:
        jars = [name for name in archive.namelist() if name.startswith("pyflink/lib/")]
        archive.extractall(CACHE / f"flink-{VERSION}", jars)
    wheel.unlink()


def _compiled(libraries: list[Path], folder: Path) -> Path:
    classes = folder / "classes"
    words = ["javac", "-nowarn", "-cp", os.pathsep.join(map(str, libraries)), "-d", str(classes)]
    done = subprocess.run([*words, *map(str, SOURCES.glob("*.java"))], capture_output=True, text=True, check=False)
    if done.returncode:
        raise Unavailable(f"the Java driver does not compile: {done.stderr.strip()[-500:]}")
    return classes
