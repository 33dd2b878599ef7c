"""Refuse queries that have no meaning, or are not evaluated, on a stream."""

from __future__ import annotations

from streamsift.errors import QueryError, UnsupportedQuery
from streamsift.logical import bound as b
from streamsift.logical.durations import limits_nothing, unit_of
from streamsift.physical.plan import DetectPlan, Plan, RankPlan
from streamsift.physical.stream.final import is_awaited, windows


def check_stream(plan: Plan) -> None:
    """Raise QueryError or UnsupportedQuery if a stream cannot have the query."""
    query = plan.query
    if isinstance(plan, DetectPlan) and query.window is None:
        hint = "a match could begin with any event of the past: say how long one may take, as in WITHIN 1 hour."
        raise QueryError("detection on a stream needs WITHIN", query.text, query.pattern.span, hint)
    if isinstance(plan, RankPlan) and query.update is None:
        hint = "a stream has no end at which the best of all could be told: UPDATE 1 min ranks at every full minute."
        raise QueryError("ranking on a stream needs UPDATE", query.text, query.pattern.span, hint)
    _refuse_endless_windows(query)
    _refuse_mixed_windows(query)
    if not isinstance(plan, DetectPlan) and is_awaited(plan):
        if query.window is None:
            hint = "any later event could join a group that nothing follows: say how long, as in WITHIN 1 hour."
            raise QueryError("a trailing group on a stream needs WITHIN", query.text, query.pattern.span, hint)
        _refuse_open_keys(query)


def _refuse_endless_windows(query: b.BoundQuery) -> None:
    """A window beyond the range of the time column never ends, as if there were none."""
    unit = unit_of(query)
    for window, _ in windows(query):
        if limits_nothing(window, unit):
            raise QueryError(
                f"WITHIN {window.text} limits nothing on a stream: no two times of `{query.binding.time}` ({unit}) are "
                "that far apart",
                query.text,
                window.span,
                "say how long a match may take, as in WITHIN 3600.",
            )


def _refuse_mixed_windows(query: b.BoundQuery) -> None:
    """How far back rows are needed is told in time or in rows of one kind of partition, not in both."""
    found = list(windows(query))
    kinds = {(window.kind, keys if window.kind is b.WindowKind.COUNT else ()) for window, keys in found}
    if len(kinds) > 1:
        message = "on a stream, windows that count rows beside windows of time, or rows of other partitions"
        hint = "give all windows as times, or all as rows of the same partitions."
        raise UnsupportedQuery(message, query.text, found[-1][0].span, hint)


def _refuse_open_keys(query: b.BoundQuery) -> None:
    """A row over all keys would wait for keys that may never have another event."""
    counted = [window for window, keys in windows(query) if window.kind is b.WindowKind.COUNT and keys]
    if counted:
        message = "on a stream, totals and ranks of matches that wait for the end of a count window within PARTITION BY"
        hint = "give the window as a time, or close the pattern with a positive event."
        raise UnsupportedQuery(message, query.text, counted[0].span, hint)
