"""Draw matches over time with Altair: a lane for each key, a row in it for each match.

Events are points colored by their class. Intervals in which a negated part must not occur are shaded. If matches are
much shorter than the time between them, the axis is the time since each match's first event.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import groupby
from statistics import median
from typing import TYPE_CHECKING, Any, Literal

import pyarrow as pa
from pyarrow import types as t

from streamsift.errors import QueryError
from streamsift.language.printer import print_quantifier
from streamsift.logical import bound as b
from streamsift.view import axes
from streamsift.view.axes import COLORS, WIDTH_PX, ElapsedUnit, moment, subtitle, vega_time
from streamsift.view.gaps import gaps, interval
from streamsift.view.tables import cell_text

if TYPE_CHECKING:
    from streamsift.view.offline import Layers

AxisName = Literal["auto", "time", "elapsed"]
ROW_PX = 16
MIN_EVENT_PX = 14  # events that are closer hide each other
BANDS = ["#f4f5f7", "#ffffff"]
ABSENCES = ["#d55e00", "#b2182b", "#8e0152", "#6a3d9a"]
EventsByVariable = Mapping[str, list[dict[str, Any]]]  # of one match


@dataclass(frozen=True, slots=True)
class Row:
    """A match: its lane, its events and the moments of its events."""

    lane: str
    events: EventsByVariable
    moments: Mapping[str, list[Any]]

    @property
    def size(self) -> int:
        return sum(map(len, self.moments.values()))

    @property
    def start(self) -> Any:
        return min(at for of_variable in self.moments.values() for at in of_variable)

    @property
    def end(self) -> Any:
        return max(at for of_variable in self.moments.values() for at in of_variable)


@dataclass(frozen=True, slots=True)
class Marks:
    """The records of the chart's layers, in rows named by their lane."""

    bands: list[dict[str, Any]] = field(default_factory=list)
    spans: list[dict[str, Any]] = field(default_factory=list)
    lines: list[dict[str, Any]] = field(default_factory=list)
    points: list[dict[str, Any]] = field(default_factory=list)


def timeline(
    matches: pa.Table,
    query: b.BoundQuery | None,
    *,
    time: str | None = None,
    key: str | None = None,
    axis: AxisName = "auto",
    total: int | None = None,
) -> Layers:
    """Draw matches; `query` gives class names, negations and the key, `total` is how many matches there are."""
    import altair as alt

    from streamsift.view.offline import Layers

    variables = event_columns(matches.schema)
    if not variables:
        hint = "RETURN the variables themselves, or omit RETURN."
        raise QueryError("this result has no event to draw", hint=hint)
    column = time or time_column(matches, variables)
    lane_key = key or (shared_column(query) if query else None)
    rows = list(_rows(matches.select(variables), column, lane_key))
    unit = _unit(rows, axis)
    title = axes.time_title(column, _event_fields(matches.schema, variables[0])[column])
    if unit is None:
        x = axes.time_axis(alt, [at for row in rows for of in row.moments.values() for at in of], title)
        y_title, starts = lane_key or "match", ""
    else:
        x = _elapsed_axis(alt, rows, unit, column)
        y_title = f"{lane_key} · start of match" if lane_key else "start of match"
        starts = f"matches that start at {title}, {axes.range_text([row.start for row in rows])}"
    marks = _marks(rows, query, unit, has_key=lane_key is not None, labels=class_labels(query, variables))
    y = alt.Y(
        "row:N",
        sort=[band["row"] for band in marks.bands],
        title=y_title,
        axis=alt.Axis(
            labelExpr="slice(datum.value, indexof(datum.value, '|') + 1)",
            labelLimit=260,
            ticks=False,
            domain=False,
            titleAngle=0,
            titleAlign="right",
            titleX=-6,
            titleY=-8,
        ),
    )
    shown = f"the first {len(rows):,} of {total:,} matches" if total is not None and total > len(rows) else ""
    return (
        Layers(layer=list(_layers(alt, marks, list(class_labels(query, variables).values()), x, y)))
        .resolve_scale(color="independent")
        .properties(width=WIDTH_PX, height=alt.Step(ROW_PX), title=subtitle(alt, shown, starts))
        .configure_view(stroke="#dddddd")
    )


def _rows(matches: pa.Table, time: str, key: str | None) -> Iterator[Row]:
    for number, match in enumerate(matches.to_pylist()):
        events = {variable: _events(value) for variable, value in match.items()}
        moments = {variable: [moment(event[time]) for event in of] for variable, of in events.items()}
        yield Row(_lane(events, key) if key else str(number + 1), events, moments)


def _unit(rows: Sequence[Row], axis: AxisName) -> ElapsedUnit | None:
    """Return the unit of elapsed time, or None to draw the time itself."""
    if not rows or axis == "time":
        return None
    lengths = [row.end - row.start for row in rows]
    if axis == "elapsed":
        return axes.elapsed_unit(max(lengths))
    if not max(lengths):
        return None  # each match is at one moment
    whole = max(row.end for row in rows) - min(row.start for row in rows)
    px_per_event = WIDTH_PX * median(length / whole / row.size for length, row in zip(lengths, rows, strict=True))
    return axes.elapsed_unit(max(lengths)) if px_per_event < MIN_EVENT_PX else None


def _elapsed_axis(alt: Any, rows: Sequence[Row], unit: ElapsedUnit, time: str) -> Callable[[str], Any]:
    longest = max(unit.count(row.start, row.end) for row in rows)
    title = f"time since the first event, 0 to {longest:,.4g} {unit.name or f'units of {time}'}"
    return lambda name: alt.X(f"{name}:Q", title=title, scale=alt.Scale(zero=False, nice=False, padding=10))


def class_labels(query: b.BoundQuery | None, columns: Sequence[str]) -> dict[str, str]:
    """Return what the legend calls the events of each column: their class, with the variable if that is ambiguous."""
    if query is None:
        return {column: column for column in columns}
    variables = {v.name: v for v in query.variables}
    variables |= {item.name: query.variables[item.variable] for item in query.output if isinstance(item, b.WholeEvent)}
    names = {column: _class_label(column, variables.get(column)) for column in columns}
    counts = Counter(names.values())
    return {c: name if counts[name] == 1 else f"{name} {c}" for c, name in names.items()}


def _class_label(column: str, variable: b.Variable | None) -> str:
    if variable is None or variable.event_class.rule is b.ClassRule.ANY:
        return column
    return variable.event_class.name + print_quantifier(variable.quantifier)


def _layers(alt: Any, marks: Marks, classes: Sequence[str], x: Callable[[str], Any], y: Any) -> Iterator[Any]:
    def data(rows: list[dict[str, Any]]) -> Any:
        return alt.Chart(alt.Data(values=rows))

    band = alt.Color("band:N", scale=alt.Scale(domain=[0, 1], range=BANDS), legend=None)
    yield data(marks.bands).mark_rect(height=ROW_PX).encode(y=y, color=band)
    if marks.spans:
        absent = alt.Color(
            "absent:N",
            scale=alt.Scale(domain=sorted({s["absent"] for s in marks.spans}), range=ABSENCES),
            legend=alt.Legend(title="in the shaded interval", symbolOpacity=0.3, labelLimit=260),
        )
        shade = data(marks.spans).mark_rect(opacity=0.28, height=ROW_PX - 4)
        yield shade.encode(x=x("from"), x2="to", y=y, color=absent, tooltip="absent:N")
    yield data(marks.lines).mark_rule(color="#888888").encode(x=x("start"), x2="end", y=y)
    palette = {"range": COLORS} if len(classes) <= len(COLORS) else {"scheme": "tableau20"}
    named = alt.Color(
        "event:N",
        scale=alt.Scale(domain=list(classes), **palette),
        legend=alt.Legend(title="event class", labelLimit=260),
    )
    fields = dict.fromkeys(name for point in marks.points for name in point if name not in ("row", "at"))
    tooltip = [alt.Tooltip(f"{_escaped(name)}:N", title=name) for name in fields]
    circles = data(marks.points).mark_circle(size=85, opacity=1, stroke="white", strokeWidth=0.7)
    yield circles.encode(x=x("at"), y=y, color=named, tooltip=tooltip)


def _escaped(name: str) -> str:
    """Escape the characters of a field name that Vega interprets."""
    return "".join("\\" + c if c in ".[]:\\" else c for c in name)


def _marks(
    rows: Sequence[Row],
    query: b.BoundQuery | None,
    unit: ElapsedUnit | None,
    *,
    has_key: bool,
    labels: Mapping[str, str],
) -> Marks:
    order = {lane: n for n, lane in enumerate(dict.fromkeys(row.lane for row in rows))}
    window = axes.length_of(query.window, rows[0].start) if query and rows else None
    marks = Marks()
    for lane, of_lane in groupby(sorted(rows, key=lambda row: order[row.lane]), key=lambda row: row.lane):
        for first, row in enumerate(of_lane):
            label = "" if first else lane
            if unit is not None:
                label = " · ".join(part for part in (label if has_key else "", _start_text(row)) if part)

            def place(at: Any, start: Any = row.start) -> Any:
                return vega_time(at) if unit is None else unit.count(start, at)

            name = f"{len(marks.bands)}|{label}"
            marks.bands.append({"row": name, "band": order[lane] % 2})
            marks.lines.append({"row": name, "start": place(row.start), "end": place(row.end)})
            marks.points.extend(
                {"row": name, "event": labels[variable], "at": place(at), **{k: cell_text(v) for k, v in event.items()}}
                for variable, events in row.events.items()
                for at, event in zip(row.moments[variable], events, strict=True)
            )
            marks.spans.extend(
                {"row": name, "absent": absent, "from": place(lower), "to": place(upper)}
                for absent, lower, upper in _spans(query, row.moments, window)
            )
    return marks


def _start_text(row: Row) -> str:
    start = row.start
    return f"{start:,.6g}" if isinstance(start, float) else f"{start:%Y-%m-%d %H:%M:%S}"


def _spans(query: b.BoundQuery | None, moments: Mapping[str, list[Any]], window: Any) -> Iterator[tuple[str, Any, Any]]:
    """Yield the intervals of one match that its negations cover, with what must not occur there."""
    if query is not None:
        by_index = {v.index: moments.get(v.name, []) for v in query.variables}
        for gap in gaps(query):
            if (reach := interval(gap, by_index, window)) is not None:
                yield gap.label, *reach


def _lane(events: EventsByVariable, key: str) -> str:
    event = next((event for of in events.values() for event in of), {})
    names = {name.lower(): name for name in event}
    if key.lower() not in names:
        raise QueryError(f"the events have no column `{key}`", hint="`key` names the column that makes the lanes.")
    return cell_text(event[names[key.lower()]])


def _events(value: Any) -> list[dict[str, Any]]:
    return [] if value is None else value if isinstance(value, list) else [value]


def event_columns(schema: pa.Schema) -> list[str]:
    """Return the columns that contain an event or a Kleene group of events."""
    return [f.name for f in schema if t.is_struct(f.type) or (t.is_list(f.type) and t.is_struct(f.type.value_type))]


def _event_fields(schema: pa.Schema, variable: str) -> dict[str, pa.DataType]:
    event = schema.field(variable).type
    return {field.name: field.type for field in (event if t.is_struct(event) else event.value_type)}


def time_column(matches: pa.Table, variables: Sequence[str]) -> str:
    """Return the field whose minimum and maximum are the bounds of the first matches, or that has a usual name."""
    fields = _event_fields(matches.schema, variables[0])
    if "match_start" in matches.column_names:
        some = matches.slice(0, 20).to_pylist()
        for name in fields:
            if some and all(_bounds(row, variables, name) == (row["match_start"], row["match_end"]) for row in some):
                return name
    named = [name for name in fields if name.lower() in ("ts", "time", "t", "timestamp")]
    if not named:
        raise QueryError("cannot tell which column of the events is the time", hint='use show(matches, time="…").')
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
    """Return a column that all events of a match share: a key of the query, or a column in equalities of all events."""
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
