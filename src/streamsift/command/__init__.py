"""Run Streamsift from the command line: `streamsift new | run | explain | check | demo | bench`.

- `main`: the commands and the entry point.
- `options`: the options that commands take, each declared once.
- `arguments`: read queries, choose the output format, and check both before anything runs.
- `jobs`: show, print, write or draw the result of a batch; `stream_job`: follow a directory of files.
- `session`: start Spark, or say what the machine lacks.
- `progress`: show on a terminal how far a batch is, and what a stream does.
- `exit_codes`: report errors and map them to exit codes.
- `starter`: the query file that `new` writes; `demo`, `demo_data`: what `demo` runs.

`run` and `explain` use Spark unless `--engine local` is given; `run --stream` is always on Spark.
"""
