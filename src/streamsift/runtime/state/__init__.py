"""Hold the events and totals of a stream, and write them as bytes.

- `event_store`: the events that are retained, in order of time; evicts from the front
- `key_index`: finds the retained events of a key by hash chains
- `keyed_vectors`: numbers for each key, written as a log of changes
- `format`: a header and immutable chunks as bytes, with the version of their format
"""

from streamsift.runtime.state.event_store import HOLDS_EVENTS, EventStore
from streamsift.runtime.state.format import Changes, chunk_bytes, head_bytes, read_chunk, read_head
from streamsift.runtime.state.keyed_vectors import KeyedVectors, the_only_key
