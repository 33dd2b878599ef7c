"""Express a workload in SQL, in several formulations, for engines that join by equality.

Time buckets are one window wide. Every event but the first is in its own bucket and in the one before, so all events of
a match meet in the bucket of its first event. Inequality joins by time alone are far slower and omitted.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

from benchmarks.engines.question import Kind, Question


@dataclass(frozen=True, slots=True)
class Dialect:
    """Syntax that differs between the two engines."""

    bucket: str  # the number of the window that an event lies in
    part: str  # elements of a list from the first to the last index, inclusive, counted from 1
    in_order: str  # all events as a list ordered by t
    event: str  # an event of a group, with all its columns


DUCKDB = Dialect(
    "t // {window}",
    "list_slice({list}, {first}, {last})",
    "array_agg({event} ORDER BY t)",
    "struct_pack(n := b.n, t := b.t, kind := 'B', key := b.key)",
)
SPARK = Dialect(
    "t DIV {window}",
    "slice({list}, CAST({first} AS INT), CAST({last} - ({first}) + 1 AS INT))",
    "transform(array_sort(array_agg(struct(t, {event} AS event))), each -> each.event)",
    "named_struct('n', b.n, 't', b.t, 'kind', 'B', 'key', b.key)",
)

IN_WINDOW = "a.key = {0}.key AND a.g = {0}.g AND {0}.t > {1}.t AND {0}.t <= a.t + {window}"


def formulations(question: Question, dialect: Dialect) -> dict[str, str]:
    """Return the formulations by short names."""
    window = question.window_ms
    match question.kind:
        case Kind.SEQUENCE:
            return {
                "later events in two buckets": _tables(window, dialect, "abc") + _all("abc", window),
                "later events in three half buckets": _tables(window, dialect, "abc", 2) + _all("abc", window),
                "bucket and key as one integer": _one_integer(window, dialect),
            }
        case Kind.NEGATION:
            return {"NOT EXISTS": _not_exists(window, dialect), "equal numbers of D so far": _same_count(window)}
        case Kind.GROUP:
            return {
                "join and collect": _collect(window, dialect),
                "a part of the key's list": _part_of_list(window, dialect),
            }
        case Kind.NEXT:
            return {"the next B by a window function": _next(window)}
        case Kind.COUNT:
            whole = f"SELECT a.key, a.t AS s, d.t AS e, count(*) AS n {_joins('abcd', window)} GROUP BY a.key, a.t, d.t"
            return {
                "all matches, then counts": _tables(window, dialect, "abcd") + _counted(whole, window),
                "counts of A and C, then of A and D": _tables(window, dialect, "abcd") + _stepwise(window),
            }


def _tables(window: int, dialect: Dialect, variables: str, parts: int = 1) -> str:
    """Return joins with buckets of window / parts."""
    number = dialect.bucket.format(window=max(1, window // parts))
    copies = ", ".join(f"({back})" for back in range(parts + (window % parts > 0) + 1))
    first, *later = variables
    found = [f"{first} AS (SELECT n, t, key, {number} AS g FROM events WHERE kind = '{first.upper()}')"]
    for name in later:
        source = f"events, (VALUES {copies}) AS copies(back) WHERE kind = '{name.upper()}'"
        found.append(f"{name} AS (SELECT n, t, key, {number} - back AS g FROM {source})")
    return f"WITH {', '.join(found)}\n"


def _joins(variables: str, window: int) -> str:
    text = f"FROM {variables[0]}"
    for before, name in pairwise(variables):
        text += f"\n  JOIN {name} ON {IN_WINDOW.format(name, before, window=window)}"
    return text


def _all(variables: str, window: int) -> str:
    return f"SELECT {', '.join(f'{name}.n AS {name}' for name in variables)} {_joins(variables, window)}"


def _one_integer(window: int, dialect: Dialect) -> str:
    key = f"{dialect.bucket.format(window=window)} * 1000000 + key"
    copies = "(VALUES (0), (1)) AS copies(back)"
    later = [
        f"{name} AS (SELECT n, t, {key} - back * 1000000 AS g FROM events, {copies} WHERE kind = '{name.upper()}')"
        for name in "bc"
    ]
    return (
        f"WITH a AS (SELECT n, t, {key} AS g FROM events WHERE kind = 'A'), {', '.join(later)}\n"
        "SELECT a.n AS a, b.n AS b, c.n AS c FROM a "
        f"JOIN b ON a.g = b.g AND b.t > a.t AND b.t <= a.t + {window} "
        f"JOIN c ON a.g = c.g AND c.t > b.t AND c.t <= a.t + {window}"
    )


def _not_exists(window: int, dialect: Dialect) -> str:
    between = "d.key = a.key AND d.g = a.g AND d.t > a.t AND d.t < b.t"
    return f"{_tables(window, dialect, 'abd')}{_all('ab', window)}\nWHERE NOT EXISTS (SELECT 1 FROM d WHERE {between})"


def _same_count(window: int) -> str:
    """Require an equal number of D events of the key before two events, so that none lies between them."""
    return (
        "WITH numbered AS (SELECT n, t, key, kind, count(CASE WHEN kind = 'D' THEN 1 END) "
        "OVER (PARTITION BY key ORDER BY t) AS d FROM events WHERE kind IN ('A', 'B', 'D'))\n"
        "SELECT a.n AS a, b.n AS b FROM numbered AS a JOIN numbered AS b ON a.key = b.key AND a.d = b.d "
        f"AND b.t > a.t AND b.t <= a.t + {window} WHERE a.kind = 'A' AND b.kind = 'B'"
    )


def _collect(window: int, dialect: Dialect) -> str:
    """Join A and C; `_joins` would put B before C, but here the group lies between."""
    return (
        f"{_tables(window, dialect, 'abc')}SELECT a.n AS a, array_agg({dialect.event}) AS b, c.n AS c FROM a "
        f"JOIN c ON {IN_WINDOW.format('c', 'a', window=window)} "
        "JOIN b ON b.key = a.key AND b.g = a.g AND b.t > a.t AND b.t < c.t GROUP BY a.n, c.n"
    )


def _part_of_list(window: int, dialect: Dialect) -> str:
    """Store each key's B events as one sorted list; the numbers of B events before A and before C delimit the group."""
    bucket = dialect.bucket.format(window=window)
    in_order = dialect.in_order.format(event=dialect.event)
    part = dialect.part.format(list="groups.b", first="a.before + 1", last="c.before")
    return (
        "WITH numbered AS (SELECT n, t, key, kind, count(CASE WHEN kind = 'B' THEN 1 END) "
        "OVER (PARTITION BY key ORDER BY t) AS before FROM events WHERE kind IN ('A', 'B', 'C')),\n"
        f"groups AS (SELECT key, {in_order} AS b FROM events AS b WHERE kind = 'B' GROUP BY key),\n"
        f"a AS (SELECT *, {bucket} AS g FROM numbered WHERE kind = 'A'),\n"
        f"c AS (SELECT *, {bucket} - back AS g FROM numbered, (VALUES (0), (1)) AS copies(back) WHERE kind = 'C')\n"
        f"SELECT a.n AS a, {part} AS b, c.n AS c FROM a JOIN c ON {IN_WINDOW.format('c', 'a', window=window)} "
        "AND c.before > a.before JOIN groups ON groups.key = a.key"
    )


def _next(window: int) -> str:
    rows = "ROWS BETWEEN 1 FOLLOWING AND UNBOUNDED FOLLOWING"
    following = f"min(CASE WHEN kind = 'B' THEN {{}} END) OVER (PARTITION BY key ORDER BY t {rows})"
    return (
        f"SELECT a, b FROM (SELECT n AS a, kind, t, {following.format('n')} AS b, {following.format('t')} AS b_t "
        f"FROM events WHERE kind IN ('A', 'B')) AS paired WHERE kind = 'A' AND b_t <= t + {window}"
    )


def _stepwise(window: int) -> str:
    """Merge matches that share A and C into one row with a count before joining D."""
    pairs = f"pairs AS (SELECT a.key, a.g, a.t, c.t AS e, count(*) AS n {_joins('abc', window)} "
    ends = IN_WINDOW.format("d", "a", window=window).replace("d.t > a.t", "d.t > a.e")
    spans = f"SELECT a.key, a.t AS s, d.t AS e, sum(a.n) AS n FROM pairs AS a JOIN d ON {ends} GROUP BY a.key, a.t, d.t"
    return ", " + pairs + f"GROUP BY a.key, a.g, a.t, c.t){_counted(spans, window)}"


def _counted(spans: str, window: int) -> str:
    """Count by first and last time of matches: a match enters at its end and leaves after its window."""
    return (
        f",\nspans AS ({spans}),\n"
        "moves AS (SELECT key, 2 * e AS o, sum(n) AS d FROM spans GROUP BY key, e UNION ALL "
        f"SELECT key, 2 * (s + {window}) + 1 AS o, -sum(n) AS d FROM spans GROUP BY key, s),\n"
        "running AS (SELECT key, o, sum(d) OVER (PARTITION BY key ORDER BY o) AS c FROM moves)\n"
        "SELECT key, CAST(o / 2 AS BIGINT) AS time, CAST(c AS BIGINT) AS count FROM running WHERE o % 2 = 0"
    )
