"""Run plans on Spark DataFrames: the only package that imports pyspark.

- `batch`: run one plan on a batch DataFrame;
- `stream`: run plans on a streaming DataFrame;
- `share`: run many queries on one DataFrame, batch or streaming;
- `row_match`: run MATCH_RECOGNIZE on a batch DataFrame;
- `distribute`: assign events to tasks, such that one task owns each result;
- `columns`: convert types, times and conditions of columns;
- `files`: read, write and start sessions for the command line;
- `workers`: send functions to Python workers, with errors for users;
- `cluster`: compare the Python environments of executors and driver;
- `table_function`: register the table function `streamsift` of Spark SQL.

Nothing here uses the JVM gateway or RDDs, except the sessions of `files`, so everything else works on Spark Connect.
PySpark 4.0 to 4.3 are supported. Only documented API of PySpark 4.0 is used, except where a comment names the version
(tests/spark/test_versions.py).
"""

from streamsift.spark.batch import placement, run_batch
from streamsift.spark.cluster import ClusterCheck, check_cluster
from streamsift.spark.columns import arrow_schema, session_settings
from streamsift.spark.row_match import describe_run, run_rows, typing_of
from streamsift.spark.share import SharedFrames, SharedStream, many_batch_placement, run_batch_many, run_stream_many
from streamsift.spark.stream import Metrics, Trigger, many_placement, metrics, run_stream, stream_placement
