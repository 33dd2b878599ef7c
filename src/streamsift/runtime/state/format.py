"""Convert the state of an engine to bytes and back: a header that stays small, and chunks that never change.

Format 1. The header is one JSON object. A chunk is an Arrow IPC stream; the metadata of its schema has the format and
what it holds. Nothing is ever pickled.
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
    """What must be written since the last time, to be able to load the engine as it is now."""

    head: bytes  # replaces the header before it
    added: dict[int, bytes]  # chunks by number
    dropped: tuple[int, ...]  # numbers of chunks that are needed no more

    @property
    def size(self) -> int:
        return len(self.head) + sum(map(len, self.added.values()))


def head_bytes(**values: Any) -> bytes:
    return json.dumps({"format": FORMAT, **values}).encode()


def read_head(head: bytes) -> dict[str, Any]:
    try:
        values = json.loads(head)
    except ValueError:
        raise BadInputError("a saved state whose head is no JSON: it was not written by streamsift") from None
    _check(values.get("format") if isinstance(values, dict) else None)
    return dict(values)


def chunk_bytes(holds: str, table: pa.Table) -> bytes:
    table = table.replace_schema_metadata({FORMAT_KEY: str(FORMAT), HOLDS_KEY: holds})
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema) as stream:
        stream.write_table(table.combine_chunks())
    return bytes(sink.getvalue().to_pybytes())


def read_chunk(chunk: bytes) -> tuple[str, pa.Table]:
    """Return the kind of the chunk, and its table."""
    try:
        table = pa.ipc.open_stream(chunk).read_all()
    except pa.ArrowInvalid:
        raise BadInputError("a chunk of a saved state is no Arrow stream: it was not written by streamsift") from None
    metadata = table.schema.metadata or {}
    version = metadata.get(FORMAT_KEY)
    _check(int(version) if version is not None else None)
    return metadata[HOLDS_KEY].decode(), table.replace_schema_metadata(None)


def _check(version: object) -> None:
    if version != FORMAT:
        raise BadInputError(
            f"a saved state of format {version}; this version reads format {FORMAT}\n"
            "Hint: go on with the version that wrote it, or start from an empty checkpoint."
        )
