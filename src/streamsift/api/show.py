"""Draw results: `ss.show` and `ss.plot`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pyarrow as pa

from streamsift.api.arguments import as_table, is_spark
from streamsift.api.query import Query, query
from streamsift.api.results import origin
from streamsift.view.pictures import MAX_ROWS, picture

if TYPE_CHECKING:
    import altair as alt


def show(
    matches: Any, of: Query | str | None = None, *, time: str | None = None, key: str | None = None
) -> alt.LayerChart:
    """Draw the first matches over time: a lane for each key, events colored by variable, gaps of negation shaded.

    `of` is the query, `time` the events' time column and `key` the one that makes the lanes. A table from `run_local`
    knows them; of a Spark DataFrame, give the query.
    """
    from streamsift.view.pictures import MAX_MATCHES, check_altair
    from streamsift.view.timeline import timeline

    check_altair()
    table = _table(matches)
    asked, known_time = _asked(table, of)
    return timeline(table.slice(0, MAX_MATCHES), asked, time or known_time, key, table.num_rows)


def plot(result: Any, of: Query | str | None = None) -> alt.TopLevelMixin:
    """Draw what fits a result: lines over time for AGG, a bump chart across windows (or bars) for PREF … RETURN k.

    Matches are drawn as `show` draws them.
    """
    table = _table(result)
    asked, time = _asked(table, of)
    return picture(table, asked, time=time)


def _table(result: Any) -> pa.Table:
    return result.limit(MAX_ROWS).toArrow() if is_spark(result) else as_table(result)


def _asked(table: pa.Table, of: Query | str | None) -> tuple[Any, str | None]:
    known = origin(table.schema)
    if of is None:
        return (None, None) if known is None else (query(known.query).sketch, known.time)
    asked = query(of) if isinstance(of, str) else of
    return asked.sketch, known.time if known else None
