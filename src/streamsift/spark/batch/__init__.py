"""Run one plan on a batch DataFrame.

- `run`: filter, shuffle and run; merge the rankings of tasks in the JVM; describe the distribution for explain.
- `task`: run the plan on one table and return the rows that its shards own.
- `spill`: split the rows of a task into tables that fit in memory, and spill the rest to disk.
- `memory`: raise an error that names what is too large, before the system kills the worker.

A task with at most `spill.MAX_ROWS` events processes one table and uses no disk. Rankings are merged only if different
tasks can find matches that are ranked together (`distribute.needs_merge`). Class names are sent to Python as bytes if
the type column gives the classes of all variables and there are at most 100.
"""

from streamsift.spark.batch.run import placement, result_rows, run_batch
from streamsift.spark.batch.spill import tables
from streamsift.spark.batch.task import execute_owned
