"""Run one plan on a batch DataFrame.

- `run`: filter, shuffle and run, merge the rankings of tasks in the JVM, and say how for explain.
- `task`: run the plan on one table and return the rows that its shards own.
- `spill`: cut the rows of a task into tables that fit into memory; larger tasks wait on disk.
- `memory`: raise an error that says what is too large before the system kills the worker.

A task without more than `spill.MAX_ROWS` events is one table and touches no disk. Rankings are merged only if matches
that are ranked together can be found by different tasks (`distribute.needs_merge`). Class names cross to Python as
bytes if all variables have classes by the type column and these are at most 100.
"""

from streamsift.spark.batch.run import placement, result_rows, run_batch
from streamsift.spark.batch.spill import tables
from streamsift.spark.batch.task import execute_owned
