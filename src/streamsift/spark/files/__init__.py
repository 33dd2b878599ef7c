"""Read events from files and prepare results for files, for the command line on Spark.

- `sources`: start a local session, count its tasks, and read or stream CSV, JSON and Parquet files.
- `sinks`: prepare a result for files, count its rows, or take its first rows.

CSV is read as strings and typed by the code of the local engine, in one more pass; JSON only where doubles would round.
"""

from streamsift.spark.files.sinks import counted, flat, heads
from streamsift.spark.files.sources import local_session, read_events, stream_events, task_counter
