"""Run plans on Spark DataFrames: the only package that imports pyspark.

- `batch`: one plan on a batch DataFrame;
- `stream`: plans on a streaming DataFrame;
- `share`: many queries on one DataFrame, batch or streaming;
- `distribute`: which task has which events, and owns which results;
- `columns`: types, times and conditions of columns;
- `files`: the sources, sinks and sessions of the command line;
- `table_function`: the table function `streamsift` of Spark SQL, for one partition of rows at a time.

Nothing here uses the JVM gateway or RDDs, except the sessions of `files`: so all else works on Spark Connect.
"""

from streamsift.spark.batch import placement, run_batch
from streamsift.spark.columns import arrow_schema, session_settings
from streamsift.spark.share import SharedFrames, SharedStream, many_batch_placement, run_batch_many, run_stream_many
from streamsift.spark.stream import Metrics, Trigger, many_placement, metrics, run_stream, stream_placement
