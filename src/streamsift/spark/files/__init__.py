"""Read events from files and Kafka topics and prepare results for them, for the command line on Spark.

- `sources`: start a local session, count its tasks, and read or stream CSV, JSON and Parquet files.
- `text_files`: parse the text of CSV and JSON files in Python workers.
- `payloads`: convert JSON payloads, one object in each record, to typed columns.
- `topics`: read and write Kafka topics.
- `sinks`: prepare a result for files, count its rows, or take its first rows.

CSV and JSON files are parsed by the code of the local engine, after a first pass that chooses the types of the columns.
"""

from streamsift.spark.files.payloads import json_columns
from streamsift.spark.files.sinks import counted, flat, heads
from streamsift.spark.files.sources import local_session, read_events, stream_events, task_counter
from streamsift.spark.files.topics import ARRIVALS, Payloads, open_topic, topic_writer
