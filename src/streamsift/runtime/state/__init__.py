"""Keep events and numbers by key between micro-batches, and convert them to bytes and back.

- `event_log`: admit events, and write them as chunks
- `event_store`: the events that later results may read, in time order or as they arrive
- `key_index`: the rows of the store that share a key with given rows
- `keyed_vectors`: vectors of numbers by key
- `format`: the bytes of a state, its header and its chunks
- `saved_file`: the state of a stream in one file, written atomically
"""

from streamsift.runtime.state.event_log import HOLDS_EVENTS, EventLog
from streamsift.runtime.state.event_store import ArrivalStore, EventStore, RetainedEvents
from streamsift.runtime.state.format import Changes, chunk_bytes, head_bytes, read_chunk, read_head
from streamsift.runtime.state.keyed_vectors import KeyedVectors, the_only_key
from streamsift.runtime.state.saved_file import SavedChunks, read_state, write_state
