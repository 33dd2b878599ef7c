"""Run Streamsift from the command line: `streamsift new | run | explain | check | demo | bench`.

- `main`: the commands and the entry point.
- `options`: the options of commands, each declared once.
- `arguments`: read queries and check output options before anything runs.
- `engines`: choose between this process and Spark.
- `jobs`: show, print, write or draw the result of a batch; `stream_job`: follow a directory of files or a
  Kafka topic; `topics`: read and write topics.
- `session`: start Spark, or report what is missing.
- `progress`: show the progress of a batch or a stream on the terminal.
- `exit_codes`: report errors and map them to exit codes.
- `starter`: the query file that `new` writes; `data_profile`: the profile of its columns, and guesses.
- `demo`, `demo_data`: the queries and data of `demo`.

`run` and `explain` work in process unless the input is too large or `--master` is given; `run` on streams uses
Spark.
"""
