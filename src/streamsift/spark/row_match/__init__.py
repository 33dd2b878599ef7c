"""Run MATCH_RECOGNIZE on a batch DataFrame.

- `run`: compute columns in the JVM, shuffle by partition, sort, and run the matcher in the tasks.
- `partitions`: split the sorted rows of a task into tables of whole partitions.
- `types`: ask the JVM for the types of expressions, without a job.

A task streams its rows: the memory of a worker is that of one table, about a million rows, or of one partition if that
is larger. Measures are computed by the JVM after the match, over what they read from it.
"""

from streamsift.spark.row_match.run import describe_run, run_rows
from streamsift.spark.row_match.types import typing_of
