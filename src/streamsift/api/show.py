"""Draw results: `ss.show` and `ss.plot`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pyarrow as pa

from streamsift.api.arguments import as_table, is_spark
from streamsift.api.query import Query
from streamsift.api.query import query as parsed
from streamsift.view.pictures import MAX_MATCHES, MAX_ROWS, check_altair, origin, picture
from streamsift.view.timeline import timeline

if TYPE_CHECKING:
    import altair as alt

    from streamsift.logical import BoundQuery


def show(
    matches: Any, of: Query | str | None = None, *, time: str | None = None, key: str | None = None
) -> alt.LayerChart:
    """Draw the first matches over time: a lane for each key, events colored by variable, gaps of negation shaded.

    `of` is the query, `time` the events' time column and `key` the one that makes the lanes. A table from `run_local`
    knows them; of a Spark DataFrame, give the query.
    """
    check_altair()
    table = _table(matches)
    query, query_time = _source(table, of)
    return timeline(table.slice(0, MAX_MATCHES), query, time or query_time, key, table.num_rows)


def plot(result: Any, of: Query | str | None = None) -> alt.TopLevelMixin:
    """Draw what fits a result: lines over time for AGG, a bump chart across windows (or bars) for PREF … RETURN k.

    Matches are drawn as `show` draws them.
    """
    table = _table(result)
    query, time = _source(table, of)
    return picture(table, query, time=time)


def _table(result: Any) -> pa.Table:
    return result.limit(MAX_ROWS).toArrow() if is_spark(result) else as_table(result)


def _source(table: pa.Table, of: Query | str | None) -> tuple[BoundQuery | None, str | None]:
    """Return the query of a result and its time column, as given or as the result is signed."""
    text, time = origin(table.schema)
    of = text if of is None else of
    return (parsed(of) if isinstance(of, str) else of).sketch if of else None, time
