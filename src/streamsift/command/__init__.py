"""Run Streamsift from the command line: `streamsift new | run | explain | check | demo | bench`.

- `main`: the commands and the entry point.
- `options`: the options that commands take, each declared once.
- `query_files`, `outputs`: read queries, and check where results go, before anything runs.
- `jobs`: show, print, write or draw the result of a batch; `stream_job`: follow a directory of files.
- `session`: start Spark, or say what the machine lacks.
- `progress`, `live_table`: how far a batch is, and what a stream does, on a terminal.
- `exit_codes`: report errors and map them to exit codes; `stderr_filter`: mute Spark once it is interrupted.
- `guess`, `starter`: the query file that `new` writes; `demo`, `demo_data`: what `demo` runs; `bench_command`: `bench`.

`run` and `explain` use Spark unless `--engine local` is given; `run --stream` is always on Spark.
"""
