"""Save the state of a stream in one file, atomically, and read it back.

Format 1. A magic line, the length of the header, the header (one JSON object) and the chunks of the engine, with a
checksum at the end. A new file is written next to the old one, forced to the disk and renamed, so that the path always
has one complete state.
"""

from __future__ import annotations

import json
import os
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from uuid import uuid4

import pyarrow as pa

from streamsift.errors import BadInputError
from streamsift.runtime.state.event_log import HOLDS_EVENTS
from streamsift.runtime.state.format import Changes, chunk_bytes, read_chunk

MAGIC = b"streamsift stream 1\n"
LENGTH_BYTES, CHECKSUM_BYTES = 8, 4


@dataclass(slots=True)
class _Run:
    """Consecutive chunks of events as one chunk, which is dropped with the last of them."""

    numbers: set[int]
    rows: int
    content: bytes


class SavedChunks:
    """The chunks of a state between two saves.

    Small chunks of events are merged like the digits of a binary counter, so that a save after each event stays cheap.
    """

    def __init__(self) -> None:
        self._events: list[_Run] = []  # in order
        self._others: dict[int, bytes] = {}

    def update(self, changes: Changes) -> bytes:
        """Apply the changes since the last save; return the header of the engine."""
        for number, content in sorted(changes.added.items()):
            self.add(number, content)
        dropped = set(changes.dropped)
        for number in dropped:
            self._others.pop(number, None)
        for run in self._events:
            run.numbers -= dropped
        self._events = [run for run in self._events if run.numbers]
        return changes.head

    def add(self, number: int, content: bytes) -> None:
        holds, table = read_chunk(content)
        if holds != HOLDS_EVENTS:
            self._others[number] = content
            return
        self._events.append(_Run({number}, table.num_rows, content))
        while len(self._events) > 1 and self._events[-2].rows <= 2 * self._events[-1].rows:
            first, second = self._events[-2:]
            tables = [read_chunk(run.content)[1] for run in (first, second)]
            merged = chunk_bytes(HOLDS_EVENTS, pa.concat_tables(tables))
            self._events[-2:] = [_Run(first.numbers | second.numbers, first.rows + second.rows, merged)]

    def items(self) -> Iterator[tuple[int, bytes]]:
        yield from ((min(run.numbers), run.content) for run in self._events)
        yield from self._others.items()


def write_state(path: Path, values: dict[str, Any], head: bytes, chunks: SavedChunks) -> None:
    """Replace the file at a path by this state."""
    parts = [(-1, head), *chunks.items()]
    header = json.dumps({**values, "parts": [[number, len(content)] for number, content in parts]}).encode()
    content = [MAGIC, len(header).to_bytes(LENGTH_BYTES, "little"), header, *(each for _, each in parts)]
    checksum = 0
    for each in content:
        checksum = zlib.crc32(each, checksum)
    _replace(path, [*content, checksum.to_bytes(CHECKSUM_BYTES, "little")])


def _replace(path: Path, content: list[bytes]) -> None:
    """Write a file next to the path, force it to the disk and rename it."""
    temporary = path.with_name(f".{path.name}.{uuid4().hex}.tmp")
    try:
        with temporary.open("wb") as file:
            file.writelines(content)
            file.flush()
            os.fsync(file.fileno())
        temporary.replace(path)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise
    _sync_folder(path.parent)


def _sync_folder(folder: Path) -> None:
    """Force the renaming to the disk, on systems that can open folders."""
    if os.name != "posix":
        return
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def read_state(path: Path) -> tuple[dict[str, Any], bytes, SavedChunks]:
    """Return the values, the header of the engine and the chunks of a saved state."""
    content = path.read_bytes()
    start = len(MAGIC) + LENGTH_BYTES
    if not content.startswith(MAGIC):
        raise BadInputError(f"{path} is not a stream saved by this version of Streamsift\nHint: check the path.")
    body, checksum = memoryview(content)[:-CHECKSUM_BYTES], content[-CHECKSUM_BYTES:]
    if len(content) < start + CHECKSUM_BYTES or zlib.crc32(body).to_bytes(CHECKSUM_BYTES, "little") != checksum:
        raise BadInputError(f"{path} is damaged: its checksum differs\nHint: resume from an older copy of the file.")
    end = start + int.from_bytes(body[len(MAGIC) : start], "little")
    values, head, chunks = json.loads(bytes(body[start:end])), b"", SavedChunks()
    for number, length in values.pop("parts"):
        part = bytes(body[end : end + length])
        end += length
        if number < 0:
            head = part
        else:
            chunks.add(number, part)
    return values, head, chunks
