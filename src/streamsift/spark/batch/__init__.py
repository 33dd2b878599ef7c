"""Run one plan on a batch DataFrame.

- `run`: filter, shuffle and run, and say how for explain.
- `spill`: cut the rows of a task into tables that fit into memory; larger tasks wait on disk.
- `memory`: raise an error that says what is too large before the system kills the worker.
- `task`: run the plan on one table and return the rows that its shards own.
- `rank`: make result rows in tasks, and merge the rankings of tasks in the JVM.

A task without more than `spill.MAX_ROWS` events is one table and touches no disk. Rankings are merged only if matches
that are ranked together can be found by different tasks (`distribute.needs_merge`).
"""

from streamsift.spark.batch.rank import result_rows
from streamsift.spark.batch.run import placement, run_batch
from streamsift.spark.batch.spill import tables
