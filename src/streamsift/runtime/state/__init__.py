"""TODO"""

from streamsift.runtime.state.event_store import HOLDS_EVENTS, EventStore
from streamsift.runtime.state.format import Changes, chunk_bytes, head_bytes, read_chunk, read_head
from streamsift.runtime.state.keyed_vectors import KeyedVectors, the_only_key

__all__ = [
    "HOLDS_EVENTS",
    "Changes",
    "EventStore",
    "KeyedVectors",
    "chunk_bytes",
    "head_bytes",
    "read_chunk",
    "read_head",
    "the_only_key",
]
