"""Draw matches over time with Altair: a lane for each key, a row in it for each match.

Events are points colored by variable; the gaps in which a negated part must not happen are shaded.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date, datetime, timedelta
from decimal import Decimal
from itertools import chain, groupby
from math import inf
from typing import TYPE_CHECKING, Any

import pyarrow as pa
from pyarrow import types as t

from streamsift.errors import QueryError
from streamsift.logical import bound as b
from streamsift.logical.durations import nearest_double
from streamsift.view.gaps import gaps, interval
from streamsift.view.tables import cell_text

if TYPE_CHECKING:
    import altair as alt

WIDTH_PX = 720
ROW_PX = 16
BANDS = ["#f4f5f7", "#ffffff"]
# Colors that can be distinguished in most kinds of color blindness (Okabe and Ito's, without the yellow and the red).
COLORS = ["#0072b2", "#e69f00", "#009e73", "#cc79a7", "#56b4e9", "#444444", "#8c6d31", "#7b68c4"]
ABSENCES = ["#d55e00", "#b2182b", "#8e0152", "#6a3d9a"]
EventsByVariable = Mapping[str, list[dict[str, Any]]]  # of one match


@dataclass(frozen=True, slots=True)
class Drawn:
    """The records of the layers, with times as numbers or ISO text, in rows named by their lane."""

    bands: list[dict[str, Any]] = field(default_factory=list)
    spans: list[dict[str, Any]] = field(default_factory=list)
    lines: list[dict[str, Any]] = field(default_factory=list)
    points: list[dict[str, Any]] = field(default_factory=list)


def timeline(
    matches: pa.Table, query: b.BoundQuery | None, time: str | None, key: str | None, total: int | None = None
) -> alt.LayerChart:
    """Draw matches; `query` gives the gaps and the key; without one gaps are not shown, and `key` names the key."""
    import altair as alt

    variables = event_columns(matches.schema)
    if not variables:
        hint = "RETURN the variables themselves, or leave RETURN out."
        raise QueryError("there is no event to draw in this result", hint=hint)
    rows = [{v: _events(row[v]) for v in variables} for row in matches.select(variables).to_pylist()]
    column = time or time_column(matches, variables)
    lane_key = key or (shared_column(query) if query else None)
    drawn = _drawn(rows, column, lane_key, query)
    x = time_axis(alt, [point["at"] for point in drawn.points], column)
    y = alt.Y(
        "row:N",
        sort=[band["row"] for band in drawn.bands],
        title=lane_key or "match",
        axis=alt.Axis(labelExpr="slice(datum.value, indexof(datum.value, '|') + 1)", ticks=False, domain=False),
    )
    shown = f"the first {len(rows):,} of {total:,} matches" if total is not None and total > len(rows) else ""
    return (
        alt.layer(*_layers(alt, drawn, variables, x, y))
        .resolve_scale(color="independent")
        .properties(width=WIDTH_PX, height=alt.Step(ROW_PX), title=note(alt, shown))
        .configure_view(stroke="#dddddd")
    )


def note(alt: Any, text: str) -> Any:
    """Return a small title for a chart that shows only a part of the result."""
    return alt.Title(text, anchor="start", fontSize=11)


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


def _layers(alt: Any, drawn: Drawn, variables: Sequence[str], x: Callable[[str], Any], y: Any) -> Iterator[Any]:
    def data(rows: list[dict[str, Any]]) -> Any:
        return alt.Chart(alt.Data(values=rows))

    band = alt.Color("band:N", scale=alt.Scale(domain=[0, 1], range=BANDS), legend=None)
    yield data(drawn.bands).mark_rect(height=ROW_PX).encode(y=y, color=band)
    if drawn.spans:
        absent = alt.Color(
            "absent:N",
            scale=alt.Scale(domain=sorted({s["absent"] for s in drawn.spans}), range=ABSENCES),
            legend=alt.Legend(title="in the shaded time", symbolOpacity=0.3, labelLimit=260),
        )
        shade = data(drawn.spans).mark_rect(opacity=0.28, height=ROW_PX - 4)
        yield shade.encode(x=x("from"), x2="to", y=y, color=absent, tooltip="absent:N")
    yield data(drawn.lines).mark_rule(color="#888888").encode(x=x("start"), x2="end", y=y)
    named = alt.Color(
        "event:N",
        scale=alt.Scale(domain=list(variables), range=COLORS),
        legend=alt.Legend(title="event", labelLimit=260),
    )
    fields = dict.fromkeys(name for point in drawn.points for name in point if name not in ("row", "at"))
    tooltip = [alt.Tooltip(f"{_escaped(name)}:N", title=name) for name in fields]
    circles = data(drawn.points).mark_circle(size=85, opacity=1, stroke="white", strokeWidth=0.7)
    yield circles.encode(x=x("at"), y=y, color=named, tooltip=tooltip)


def _escaped(name: str) -> str:
    """Return a field's name as Vega reads it: dots, brackets and colons would mean something."""
    return "".join("\\" + c if c in ".[]:\\" else c for c in name)


def _drawn(rows: Sequence[EventsByVariable], time: str, key: str | None, query: b.BoundQuery | None) -> Drawn:
    numbered = [(_lane(row, key), row) for row in rows]
    order = {lane: n for n, lane in enumerate(dict.fromkeys(lane for lane, _ in numbered))}
    window = _window(query, rows, time)
    drawn = Drawn()
    for lane, of_lane in groupby(sorted(numbered, key=lambda pair: order[pair[0]]), key=lambda pair: pair[0]):
        for first, (_, row) in enumerate(of_lane):
            place = len(drawn.bands)
            name = f"{place}|{'' if first else lane if key else place + 1}"
            times = {variable: [moment(event[time]) for event in events] for variable, events in row.items()}
            every = [at for of_variable in times.values() for at in of_variable]
            drawn.bands.append({"row": name, "band": order[lane] % 2})
            drawn.lines.append({"row": name, "start": plain(min(every)), "end": plain(max(every))})
            drawn.points.extend(
                {"row": name, "event": variable, "at": plain(at), **{k: cell_text(v) for k, v in event.items()}}
                for variable, events in row.items()
                for at, event in zip(times[variable], events, strict=True)
            )
            drawn.spans.extend({"row": name, **span} for span in _spans(query, times, window))
    return drawn


def _spans(query: b.BoundQuery | None, times: Mapping[str, list[Any]], window: Any) -> Iterator[dict[str, Any]]:
    """Yield the gaps of one match."""
    if query is not None:
        by_index = {v.index: times.get(v.name, []) for v in query.variables}
        for gap in gaps(query):
            if (reach := interval(gap, by_index, window)) is not None:
                yield {"absent": gap.label, "from": plain(reach[0]), "to": plain(reach[1])}


def _lane(row: EventsByVariable, key: str | None) -> str:
    if key is None:
        return str(id(row))  # a lane for each match
    event = next(chain.from_iterable(row.values()), {})
    names = {name.lower(): name for name in event}
    if key.lower() not in names:
        raise QueryError(f"the events have no column `{key}`", hint="`key` names the column that makes the lanes.")
    return cell_text(event[names[key.lower()]])


def _events(value: Any) -> list[dict[str, Any]]:
    return [] if value is None else value if isinstance(value, list) else [value]


def event_columns(schema: pa.Schema) -> list[str]:
    """Return the columns that hold an event, or a group of them."""
    return [f.name for f in schema if t.is_struct(f.type) or (t.is_list(f.type) and t.is_struct(f.type.value_type))]


def time_column(matches: pa.Table, variables: Sequence[str]) -> str:
    """Return the field whose least and greatest value are the bounds of the first matches, or that is called so."""
    first = matches.schema.field(variables[0]).type
    fields = [field.name for field in (first if t.is_struct(first) else first.value_type)]
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
        if any(isinstance(value, str) for value in values):
            values = [moment(value) for value in values]
        return min(values), max(values)
    except (TypeError, ValueError):
        return None


def shared_column(query: b.BoundQuery) -> str | None:
    """Return the column that all events of a match share: a key of the query, or one that its equalities tie."""
    if query.partition_by or query.group_by:
        return (*query.partition_by, *query.group_by)[0]
    positive = sum(v.positive for v in query.variables)
    counts: Counter[str] = Counter()
    for predicate in query.predicates:
        match predicate:
            case b.Predicate(
                expression=b.Operation(op="=", operands=(b.Column(name=left), b.Column(name=right))), scope=b.ROOT_SCOPE
            ) if left == right:
                counts[left] += 1
    return next((name for name, count in counts.items() if count >= positive - 1), None)


def _window(query: b.BoundQuery | None, rows: Sequence[EventsByVariable], time: str) -> Any:
    """Return the length of the window in the unit of differences of times; None if there is no window of time."""
    if query is None or query.window is None or query.window.kind is b.WindowKind.COUNT:
        return None
    first = next((event[time] for row in rows[:1] for events in row.values() for event in events), None)
    is_number = isinstance(first, int | float | Decimal)
    length, longest = nearest_double(query.window.length), inf if is_number else timedelta.max.total_seconds()
    if length >= longest:
        return None  # no two times are that far apart
    return length if is_number else timedelta(seconds=length)


def moment(value: Any) -> Any:
    """Return a time to compute with: a float, or a datetime without a zone (in UTC if it had one)."""
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
