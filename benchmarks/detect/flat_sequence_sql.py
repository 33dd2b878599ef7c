"""Evaluate SEQ(A a, B b, C c) WHERE [key] WITHIN w with DuckDB, by several SQL formulations.

All are hash joins on the key and a time bucket that is one window (or half a window) wide: a match lies in the bucket
of its first event or the following ones. They name constants and shared columns once, as an expert would. Two much
slower formulations are omitted: the plain inequality self-join (eight times the best of these with 12 classes), and
range joins on key and time packed into one integer (9 s for 1/5 of the events).
"""

from __future__ import annotations

from collections.abc import Callable

import duckdb
import pyarrow as pa

SOURCES = {
    "Arrow": None,
    "sorted table": "SELECT * FROM arrow_events ORDER BY key, ts",  # the sort is not timed
}


def rivals(table: pa.Table, window_us: int) -> dict[str, Callable[[], pa.Table]]:
    """Return each formulation with each way to store the events, on one thread."""
    connection = duckdb.connect()
    connection.execute("SET threads = 1")
    connection.execute("SET preserve_insertion_order = false")
    connection.register("arrow_events", table)
    names = {}
    for number, (source, definition) in enumerate(SOURCES.items()):
        names[source] = "arrow_events" if definition is None else f"events_{number}"
        if definition is not None:
            connection.execute(f"CREATE TABLE {names[source]} AS {definition}")
    formulations = {
        "later events in two buckets": later_replicated(window_us, 1),
        "later events in three half buckets": later_replicated(window_us, 2),
        "bucket and key as one integer": one_integer(window_us),
        "first, then last event in two buckets": both_replicated(window_us),
    }

    def answer(sql: str) -> Callable[[], pa.Table]:
        return lambda: connection.sql(sql).to_arrow_table()

    return {
        f"DuckDB, {source}: {formulation}": answer(sql.replace("EVENTS", names[source]))
        for formulation, sql in formulations.items()
        for source in SOURCES
    }


def _event(variable: str, time: str = "{}.ts", key: str = "a.key") -> str:
    fields = f"ts := {time.format(variable)}, kind := '{variable.upper()}', key := {key}, value := {variable}.value"
    return f"struct_pack({fields}) AS {variable}"


def _result() -> str:
    return f"SELECT {', '.join(map(_event, 'abc'))}, a.ts AS match_start, c.ts AS match_end"


def later_replicated(window_us: int, parts: int) -> str:
    """Use buckets of window / parts; the second and third events are in their own and the `parts` buckets before."""
    bucket = f"epoch_us(ts) // {window_us // parts}"
    copies = ", ".join(f"({back})" for back in range(parts + 1))
    return f"""
        WITH a AS (SELECT ts, key, value, {bucket} AS g FROM EVENTS WHERE kind = 'A'),
             b AS (SELECT ts, key, value, {bucket} - d AS g FROM EVENTS, (VALUES {copies}) AS t(d) WHERE kind = 'B'),
             c AS (SELECT ts, key, value, {bucket} - d AS g FROM EVENTS, (VALUES {copies}) AS t(d) WHERE kind = 'C')
        {_result()}
        FROM a JOIN b ON a.key = b.key AND a.g = b.g AND b.ts > a.ts AND b.ts <= a.ts + to_microseconds({window_us})
               JOIN c ON a.key = c.key AND a.g = c.g AND c.ts > b.ts AND c.ts <= a.ts + to_microseconds({window_us})"""


def one_integer(window_us: int) -> str:
    """Use the same buckets with one join key and integer times."""
    key = f"epoch_us(ts) // {window_us} * 1000000 + key"
    columns = "epoch_us(ts) AS t, key, value"
    copies = "(VALUES (0), (1)) AS t(d)"
    events = ", ".join(_event(variable, "make_timestamp({}.t)") for variable in "abc")
    return f"""
        WITH a AS (SELECT {columns}, {key} AS g FROM EVENTS WHERE kind = 'A'),
             b AS (SELECT {columns}, {key} - d * 1000000 AS g FROM EVENTS, {copies} WHERE kind = 'B'),
             c AS (SELECT {columns}, {key} - d * 1000000 AS g FROM EVENTS, {copies} WHERE kind = 'C')
        SELECT {events}, make_timestamp(a.t) AS match_start, make_timestamp(c.t) AS match_end
        FROM a JOIN b ON a.g = b.g AND b.t > a.t AND b.t <= a.t + {window_us}
               JOIN c ON a.g = c.g AND c.t > b.t AND c.t <= a.t + {window_us}"""


def both_replicated(window_us: int) -> str:
    """Put the first event in its own bucket and the next, the third in its own and the one before."""
    bucket = f"epoch_us(ts) // {window_us}"
    copies = "(VALUES (0), (1)) AS t(d)"
    return f"""
        WITH a AS (SELECT ts, key, value, {bucket} + d AS g FROM EVENTS, {copies} WHERE kind = 'A'),
             b AS (SELECT ts, key, value, {bucket} AS g FROM EVENTS WHERE kind = 'B'),
             c AS (SELECT ts, key, value, {bucket} - d AS g FROM EVENTS, {copies} WHERE kind = 'C')
        {_result()}
        FROM a JOIN b ON a.key = b.key AND a.g = b.g AND b.ts > a.ts AND b.ts <= a.ts + to_microseconds({window_us})
               JOIN c ON b.key = c.key AND b.g = c.g AND c.ts > b.ts AND c.ts <= a.ts + to_microseconds({window_us})"""
