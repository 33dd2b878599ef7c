"""Draw matches over time with Altair: a lane for each key, a row in it for each match.

Events are points coloured by variable; the gaps in which a negated part must not happen are shaded.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from decimal import Decimal
from itertools import groupby
from math import inf
from typing import TYPE_CHECKING, Any

import pyarrow as pa
from pyarrow import types as t

from streamsift.errors import QueryError
from streamsift.logical import bound as b
from streamsift.logical.durations import nearest_double
from streamsift.view.gaps import Gap, gaps, interval
from streamsift.view.tables import cell_text

if TYPE_CHECKING:
    import altair as alt

WIDTH_PX = 720
ROW_PX = 16
BANDS = ["#f4f5f7", "#ffffff"]
# Colours that are told apart in most kinds of colour blindness (those of Okabe and Ito, the yellow and red left out).
COLOURS = ["#0072b2", "#e69f00", "#009e73", "#cc79a7", "#56b4e9", "#444444", "#8c6d31", "#7b68c4"]
ABSENCES = ["#d55e00", "#b2182b", "#8e0152", "#6a3d9a"]


@dataclass(frozen=True, slots=True)
class Drawn:
    """One match as it is drawn: times as numbers or ISO text, in rows named by their lane."""

    row: str
    lane: int
    points: list[dict[str, Any]]
    spans: list[dict[str, Any]]
    line: dict[str, Any]


def timeline(
    matches: pa.Table, query: b.BoundQuery | None, time: str | None, key: str | None, total: int | None = None
) -> alt.LayerChart:
    """Draw matches; `query` gives the gaps and the key; without one gaps are not shown, and `key` names the key."""
    import altair as alt

    variables = event_columns(matches.schema)
    if not variables:
        raise QueryError(
            "there is no event to draw in this result", hint="RETURN the variables themselves, or leave RETURN out."
        )
    rows = matches.to_pylist()
    column = time or time_column(matches, variables)
    lane_key = key or (shared_column(query) if query else None)
    drawn = list(_drawn(rows, variables, column, lane_key, query))
    x = time_axis(alt, [point["at"] for d in drawn for point in d.points], column)
    y = alt.Y(
        "row:N",
        sort=[d.row for d in drawn],
        title=lane_key or "match",
        axis=alt.Axis(labelExpr="slice(datum.value, indexof(datum.value, '|') + 1)", ticks=False, domain=False),
    )
    layers = _layers(alt, drawn, variables, x, y)
    shown = f"the first {len(rows):,} of {total:,} matches" if total is not None and total > len(rows) else ""
    return (
        alt.layer(*layers)
        .resolve_scale(color="independent")
        .properties(width=WIDTH_PX, height=alt.Step(ROW_PX), title=alt.Title(shown, anchor="start", fontSize=11))
        .configure_view(stroke="#dddddd")
    )


def time_axis(alt: Any, values: Sequence[Any], title: str) -> Callable[[str], Any]:
    """Return the x axis of a field: in UTC with a clock of 24 hours, or plain numbers."""
    if any(isinstance(value, int | float) for value in values):
        return lambda name: alt.X(f"{name}:Q", title=title, scale=alt.Scale(zero=False, padding=10))
    moments = [datetime.fromisoformat(value) for value in values]
    span = max(moments) - min(moments) if moments else timedelta()
    shown = "%H:%M:%S" if span < timedelta(minutes=10) else "%H:%M" if span < timedelta(days=1) else "%b %d %H:%M"
    shown = "%b %d" if span > timedelta(days=6) else shown
    axis = alt.Axis(format=shown, labelOverlap=True, labelSeparation=8)
    day = f", UTC, {min(moments):%Y-%m-%d}" if moments else ""
    return lambda name: alt.X(f"{name}:T", title=title + day, scale=alt.Scale(type="utc", padding=10), axis=axis)


def _layers(
    alt: Any, drawn: Sequence[Drawn], variables: Sequence[str], x: Callable[[str], Any], y: Any
) -> Iterator[Any]:
    def data(rows: list[dict[str, Any]]) -> Any:
        return alt.Chart(alt.Data(values=rows))

    bands = [{"row": d.row, "band": d.lane % 2} for d in drawn]
    band = alt.Color("band:N", scale=alt.Scale(domain=[0, 1], range=BANDS), legend=None)
    yield data(bands).mark_rect(height=ROW_PX).encode(y=y, color=band)
    spans = [span for d in drawn for span in d.spans]
    if spans:
        absent = alt.Color(
            "absent:N",
            scale=alt.Scale(domain=sorted({s["absent"] for s in spans}), range=ABSENCES),
            legend=alt.Legend(title="in the shaded time", symbolOpacity=0.3, labelLimit=260),
        )
        shade = data(spans).mark_rect(opacity=0.28, height=ROW_PX - 4)
        yield shade.encode(x=x("from"), x2="to", y=y, color=absent, tooltip="absent:N")
    yield data([d.line for d in drawn]).mark_rule(color="#888888").encode(x=x("start"), x2="end", y=y)
    points = [point for d in drawn for point in d.points]
    named = alt.Color(
        "event:N",
        scale=alt.Scale(domain=list(variables), range=COLOURS),
        legend=alt.Legend(title="event", labelLimit=260),
    )
    told = list(dict.fromkeys(name for point in points for name in point if name not in ("row", "at")))
    tooltip = [alt.Tooltip(f"{_escaped(name)}:N", title=name) for name in told]
    circles = data(points).mark_circle(size=85, opacity=1, stroke="white", strokeWidth=0.7)
    yield circles.encode(x=x("at"), y=y, color=named, tooltip=tooltip)


def _escaped(name: str) -> str:
    """Return a field's name as Vega reads it: dots, brackets and colons would mean something."""
    return "".join("\\" + c if c in ".[]:\\" else c for c in name)


def _drawn(
    rows: Sequence[dict[str, Any]], variables: Sequence[str], time: str, key: str | None, query: b.BoundQuery | None
) -> Iterator[Drawn]:
    numbered = [(_lane(row, variables, key), row) for row in rows]
    order = {lane: n for n, lane in enumerate(dict.fromkeys(lane for lane, _ in numbered))}
    absences = gaps(query) if query else []
    window = _window(query, rows, variables, time)
    place = 0
    for lane, of_lane in groupby(sorted(numbered, key=lambda pair: order[pair[0]]), key=lambda pair: pair[0]):
        for first, (_, row) in enumerate(of_lane):
            name = f"{place}|{'' if first else lane if key else place + 1}"
            yield _one(row, name, order[lane], variables, time, query, absences, window)
            place += 1


def _one(
    row: dict[str, Any],
    name: str,
    lane: int,
    variables: Sequence[str],
    time: str,
    query: b.BoundQuery | None,
    absences: Sequence[Gap],
    window: Any,
) -> Drawn:
    found = {variable: _events(row[variable]) for variable in variables}
    times = [moment(event[time]) for events in found.values() for event in events]
    points = [
        {
            "row": name,
            "event": variable,
            "at": plain(moment(event[time])),
            **{k: cell_text(v) for k, v in event.items()},
        }
        for variable, events in found.items()
        for event in events
    ]
    spans = []
    if query is not None and absences:
        by_index = {v.index: [moment(e[time]) for e in found.get(v.name, ())] for v in query.variables}
        for gap in absences:
            reach = interval(gap, by_index, window)
            if reach is not None:
                spans.append({"row": name, "absent": gap.label, "from": plain(reach[0]), "to": plain(reach[1])})
    line = {"row": name, "start": plain(min(times)), "end": plain(max(times))}
    return Drawn(name, lane, points, spans, line)


def _lane(row: dict[str, Any], variables: Sequence[str], key: str | None) -> str:
    if key is None:
        return str(id(row))  # a lane of its own
    events = [event for variable in variables for event in _events(row[variable])]
    names = {name.lower(): name for event in events[:1] for name in event}
    if key.lower() not in names:
        raise QueryError(f"the events have no column `{key}`", hint="`key` names the column that makes the lanes.")
    return cell_text(events[0][names[key.lower()]])


def _events(value: Any) -> list[dict[str, Any]]:
    return [] if value is None else value if isinstance(value, list) else [value]


def event_columns(schema: pa.Schema) -> list[str]:
    """Return the columns that hold an event, or a group of them."""
    return [f.name for f in schema if t.is_struct(f.type) or (t.is_list(f.type) and t.is_struct(f.type.value_type))]


def time_column(matches: pa.Table, variables: Sequence[str]) -> str:
    """Return the field whose least and greatest value are the bounds of the first matches, or that is called so."""
    fields = _fields(matches.schema.field(variables[0]).type)
    if "match_start" in matches.column_names:
        some = matches.slice(0, 20).to_pylist()
        for name in fields:
            if some and all(_bounds(row, variables, name) == (row["match_start"], row["match_end"]) for row in some):
                return name
    named = [name for name in fields if name.lower() in ("ts", "time", "t", "timestamp")]
    if not named:
        raise QueryError("which column of the events is the time?", hint='say so: show(matches, time="ts").')
    return named[0]


def _bounds(row: dict[str, Any], variables: Sequence[str], name: str) -> tuple[Any, Any] | None:
    try:
        values = [event[name] for variable in variables for event in _events(row[variable])]
        is_text = any(isinstance(value, str) for value in values)
        found = [moment(v) for v in values] if is_text else values
        return (min(found), max(found))
    except (TypeError, ValueError):
        return None


def _fields(data_type: pa.DataType) -> list[str]:
    struct = data_type if t.is_struct(data_type) else data_type.value_type
    return [struct.field(i).name for i in range(struct.num_fields)]


def shared_column(query: b.BoundQuery) -> str | None:
    """Return the column that all events of a match share: a key of the query, or one that its equalities tie."""
    if query.partition_by or query.group_by:
        return (*query.partition_by, *query.group_by)[0]
    positive = sum(v.positive for v in query.variables)
    counts: dict[str, int] = {}
    for predicate in query.predicates:
        match predicate.expression:
            case b.Operation(op="=", operands=(b.Column(name=left), b.Column(name=right))) if left == right:
                if predicate.scope == b.ROOT_SCOPE:
                    counts[left] = counts.get(left, 0) + 1
    return next((name for name, count in counts.items() if count >= positive - 1), None)


def _window(query: b.BoundQuery | None, rows: Sequence[dict[str, Any]], variables: Sequence[str], time: str) -> Any:
    """Return the length of the window in what differences of times are; None where there is none in time."""
    if query is None or query.window is None or query.window.kind is b.WindowKind.COUNT:
        return None
    events = [event for row in rows[:1] for variable in variables for event in _events(row[variable])]
    is_number = bool(events) and isinstance(events[0][time], int | float | Decimal)
    length, longest = nearest_double(query.window.length), inf if is_number else timedelta.max.total_seconds()
    if length >= longest:
        return None  # no two times are that far apart
    return length if is_number else timedelta(seconds=length)


def moment(value: Any) -> Any:
    """Return a time to reckon with: a float, or a datetime without a zone (in UTC if it had one)."""
    match value:
        case datetime():
            return (value - value.utcoffset()).replace(tzinfo=None) if value.tzinfo else value  # type: ignore[operator]
        case date():
            return datetime(value.year, value.month, value.day)
        case str():
            return moment(datetime.fromisoformat(value))
        case _:
            return float(value)


def plain(value: Any) -> Any:
    """Return a time as Vega reads it."""
    return value.isoformat(timespec="milliseconds") + "Z" if isinstance(value, datetime) else value
