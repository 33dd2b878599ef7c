"""Serialize the state of an engine as a small header and immutable chunks.

Format 1. The header is one JSON object. A chunk is an Arrow IPC stream; its schema metadata records the format version
and the kind of content. Nothing is pickled.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from streamsift.errors import BadInputError

FORMAT = 1
FORMAT_KEY, HOLDS_KEY = b"streamsift_format", b"streamsift_holds"


@dataclass(frozen=True, slots=True)
class Changes:
    """The writes since the last save that bring the saved state up to date."""

    head: bytes  # replaces the previous header
    added: dict[int, bytes]  # chunks by number
    dropped: tuple[int, ...]  # numbers of chunks to delete

    @property
    def size(self) -> int:
        return len(self.head) + sum(map(len, self.added.values()))


def head_bytes(**values: Any) -> bytes:
    return json.dumps({"format": FORMAT, **values}).encode()


def read_head(head: bytes) -> dict[str, Any]:
    try:
        values = json.loads(head)
    except ValueError:
        raise BadInputError("the header of the saved state is not JSON: not written by Streamsift") from None
    _check(values.get("format") if isinstance(values, dict) else None)
    return dict(values)


def chunk_bytes(holds: str, table: pa.Table) -> bytes:
    table = table.replace_schema_metadata({FORMAT_KEY: str(FORMAT), HOLDS_KEY: holds})
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema) as stream:
        stream.write_table(table.combine_chunks())
    return bytes(sink.getvalue().to_pybytes())


def read_chunk(chunk: bytes) -> tuple[str, pa.Table]:
    """Return the kind of a chunk and its table."""
    try:
        table = pa.ipc.open_stream(chunk).read_all()
    except pa.ArrowInvalid:
        raise BadInputError("a chunk of the saved state is not an Arrow stream: not written by Streamsift") from None
    metadata = table.schema.metadata or {}
    version = metadata.get(FORMAT_KEY)
    _check(int(version) if version is not None else None)
    return metadata[HOLDS_KEY].decode(), table.replace_schema_metadata(None)


def _check(version: object) -> None:
    if version != FORMAT:
        raise BadInputError(
            f"the saved state has format {version}, but this version reads format {FORMAT}\n"
            "Hint: use the version of Streamsift that wrote it, or start with an empty checkpoint."
        )
