"""Draw results: `ss.show` and `ss.plot`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pyarrow as pa

from streamsift.api.arguments import as_table, is_spark
from streamsift.api.query import Query
from streamsift.api.query import query as parsed
from streamsift.errors import QueryError
from streamsift.view.plots import MAX_MATCHES, MAX_ROWS, check_altair, frame_origin, origin, plot_result
from streamsift.view.timeline import AxisName, timeline

if TYPE_CHECKING:
    from streamsift.logical import BoundQuery
    from streamsift.view.offline import Layers, Panels


def show(
    matches: Any,
    of: Query | str | None = None,
    *,
    time: str | None = None,
    key: str | None = None,
    axis: AxisName = "auto",
) -> Layers:
    """Draw the first 40 matches as a timeline, with one row per match and one lane per key.

    Points are events, colored by class. Shading marks the intervals in which a negated sub-pattern must not occur.
    Requires `pip install 'streamsift[plot]'`.

    Args:
        matches: Result of `run_local` or `run`, or a table with the same columns. A Spark DataFrame is executed.
        of: Query that returned the matches. Default: the query that the result of `run_local` or `run` remembers.
        time: Time column of the events. Default: the time column of that query.
        key: Column of the events that makes the lanes. Default: a column that the query requires to be equal in all
            events of a match, such as a PARTITION BY column.
        axis: "time" draws the time of the events. "elapsed" draws the time since the first event of each match.
            "auto" (default) chooses "elapsed" if matches would be too short to see on an axis of all times.

    Returns:
        An Altair chart. Notebooks display it without a network; `chart.save("matches.svg")` writes a file.

    Raises:
        QueryError: The result contains no events, or the time column cannot be determined.
        SetupError: Altair or vl-convert is not installed.

    Example:
        >>> import pyarrow as pa
        >>> import streamsift as ss
        >>> events = pa.table({"t": [1, 2, 5], "kind": ["A", "B", "B"]})
        >>> matches = ss.query("PATTERN SEQ(A a, B b)").run_local(events, time="t", type="kind")
        >>> chart = ss.show(matches)
    """
    if axis not in ("auto", "time", "elapsed"):
        raise QueryError(f"invalid value for axis: {axis!r}", hint='expected "auto", "time" or "elapsed".')
    check_altair()
    table = _table(matches)
    query, query_time = _source(matches, table, of)
    first = table.slice(0, MAX_MATCHES)
    return timeline(first, query, time=time or query_time, key=key, axis=axis, total=table.num_rows)


def plot(result: Any, of: Query | str | None = None) -> Layers | Panels:
    """Draw a result as the chart type that fits it.

    - Aggregates (AGG): one panel per aggregate, one color per group. With UPDATE, lines have gaps at ticks without a
      match.
    - Rankings (PREF) with UPDATE: a bump chart, the rank of each match in each window.
    - Rankings without UPDATE: the score of each match.
    - Matches: a timeline, as drawn by `show`.

    Requires `pip install 'streamsift[plot]'`.

    Args:
        result: Result of `run_local` or `run`, or a table with the same columns. A Spark DataFrame is executed; its
            first 20,000 rows are drawn.
        of: Query that returned the result. Default: the query that the result of `run_local` or `run` remembers.

    Returns:
        An Altair chart. Notebooks display it without a network; `chart.save("result.html")` writes a file.

    Raises:
        QueryError: The result has neither aggregates nor scores nor events.
        SetupError: Altair or vl-convert is not installed.

    Example:
        >>> import pyarrow as pa
        >>> import streamsift as ss
        >>> events = pa.table({"t": [1, 2, 5], "kind": ["A", "B", "B"]})
        >>> q = ss.query("PATTERN SEQ(A a, B b) AGG COUNT WITHIN 4 UPDATE 2")
        >>> chart = ss.plot(q.run_local(events, time="t", type="kind"))
    """
    table = _table(result)
    query, time = _source(result, table, of)
    return plot_result(table, query, time=time)


def _table(result: Any) -> pa.Table:
    return result.limit(MAX_ROWS).toArrow() if is_spark(result) else as_table(result)


def _source(result: Any, table: pa.Table, of: Query | str | None) -> tuple[BoundQuery | None, str | None]:
    """Return the query of a result and its time column, as given or as the result is signed."""
    text, time = frame_origin(result) if is_spark(result) else origin(table.schema)
    of = text if of is None else of
    return (parsed(of) if isinstance(of, str) else of).sketch if of else None, time
