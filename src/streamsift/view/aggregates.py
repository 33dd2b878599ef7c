"""Draw aggregates over time with Altair: a panel for each measure, a color for each group."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from math import inf, isfinite
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from streamsift.errors import QueryError
from streamsift.language.syntax import Emit
from streamsift.logical import bound as b
from streamsift.logical.columns import kind_of
from streamsift.view.axes import COLORS, WIDTH_PX, length_of, moment, subtitle, time_axis, time_title, vega_time
from streamsift.view.tables import cell_text

if TYPE_CHECKING:
    from streamsift.view.offline import Layers, Panels

MAX_GROUPS = 8  # colors that can be distinguished
HEIGHT_PX = 180
MAX_INTEGER_TICKS = 8  # Vega puts fractions between the integers of a short axis
FROM_ZERO = ("COUNT", "SUM")


def aggregates(rows: pa.Table, query: b.BoundQuery | None) -> Panels | Layers:
    """Draw a result of AGG; of many groups, draw those with the largest values.

    Lines are drawn only where a value holds until the next row: with UPDATE from tick to tick, with EMIT CHANGES, and
    without a window. Otherwise rows exist only where a match ends, so they are points.
    """
    import altair as alt

    from streamsift.view.offline import Layers, Panels

    functions, groups = _measures(rows, query)
    if not functions:
        raise QueryError("this result has no aggregate to draw", hint="plot() draws results of AGG and PREF.")
    rows = rows.filter(rows.column("time").is_valid())
    moments = [moment(at) for at in rows.column("time").to_pylist()]
    labels = [""] * len(moments)
    if groups:
        labels = [" · ".join(map(cell_text, row.values())) for row in rows.select(groups).to_pylist()]
    shown, omitted = _largest(rows.column(next(iter(functions))).to_pylist(), labels)
    step = length_of(query.update, next(iter(moments), None)) if query else None
    is_line = step is not None or (query is not None and (query.emit is Emit.CHANGES or query.window is None))
    ends = [] if step is None else [at + step for at in moments]
    x = time_axis(alt, [*moments, *ends], time_title("time", rows.schema.field("time").type))
    panels, has_gaps = [], False
    for name, function in functions.items():
        values = map(_float, rows.column(name).to_pylist())
        points = [p for p in zip(labels, moments, values, strict=True) if p[0] in shown]
        records = list(_step_points(points, step)) if is_line else []
        has_gaps = has_gaps or any(_is_gap(*pair) for pair in pairwise(records))
        panels.append(Layers(layer=list(_layers(alt, points, records, (name, function), x, shown))))
    empty = "gaps: no match in the window" if has_gaps and step is not None else ""
    chart = panels[0] if len(panels) == 1 else Panels(vconcat=panels)
    return chart.properties(title=subtitle(alt, omitted, empty)) if omitted or empty else chart


def _is_gap(record: dict[str, Any], following: dict[str, Any]) -> bool:
    return record["value"] is None and record["group"] == following["group"]


def _measures(rows: pa.Table, query: b.BoundQuery | None) -> tuple[dict[str, str], list[str]]:
    """Return the function of each measure, and the columns that name the group.

    Without the query, a measure is called `count`, `sum_…` and so on, or follows such a column; if no name helps, every
    number is a measure. The columns before the first measure name the group.
    """
    names = [name for name in rows.column_names if name != "time"]
    numeric = [name for name in names if kind_of(rows.schema.field(name).type) in b.NUMERIC]
    if query is not None and query.aggregates:
        functions = {a.name: a.function.upper() for a in query.aggregates if a.name in numeric}
        return functions, [name for name in names if name not in {a.name for a in query.aggregates}]
    called = [name for name in names if name == "count" or name.startswith(("sum_", "avg_", "min_", "max_"))]
    first = names.index((called or numeric)[0]) if called or numeric else len(names)
    return {n: n.partition("_")[0].upper() for n in names[first:] if n in numeric}, names[:first]


def _largest(values: list[Any], labels: list[str]) -> tuple[list[str], str]:
    """Return the groups to draw, and a note if there are others."""
    heights: dict[str, float] = {}
    for label, value in zip(labels, values, strict=True):
        heights[label] = max(heights.get(label, -inf), -inf if value is None else float(value))
    largest = sorted(heights, key=lambda label: -heights[label])[:MAX_GROUPS]
    omitted = f"the {MAX_GROUPS} of {len(heights):,} groups with the largest values"
    return largest, omitted if len(heights) > MAX_GROUPS else ""


def _float(value: Any) -> float | None:
    return float(value) if value is not None and isfinite(value) else None


def _step_points(points: list[tuple[str, Any, float | None]], step: Any) -> Iterator[dict[str, Any]]:
    """Yield the points of step lines: a value holds until the next row, but not beyond the next tick.

    Where a tick has no row, a null breaks the line.
    """
    by_group: dict[str, list[tuple[Any, float | None]]] = {}
    for group, at, value in points:
        by_group.setdefault(group, []).append((at, value))
    for group, of_group in by_group.items():
        for (at, value), following in pairwise([*sorted(of_group, key=lambda p: p[0]), None]):  # type: ignore[misc]
            yield {"group": group, "time": vega_time(at), "value": value}
            if step is not None and (following is None or following[0] > at + step * 1.5):
                yield {"group": group, "time": vega_time(at + step), "value": value}
                yield {"group": group, "time": vega_time(at + step), "value": None}


def _layers(
    alt: Any,
    points: list[tuple[str, Any, float | None]],
    records: list[dict[str, Any]],
    measure: tuple[str, str],
    x: Any,
    groups: list[str],
) -> Iterator[Any]:
    name, function = measure
    color: Any = alt.value(COLORS[0])
    if groups != [""]:
        scale = alt.Scale(domain=sorted(groups), range=COLORS)
        color = alt.Color("group:N", scale=scale, legend=alt.Legend(title="group"))
    encoded = {"x": x("time"), "y": _value_axis(alt, name, function, [v for *_, v in points]), "color": color}
    if records:
        lines = alt.Chart(alt.Data(values=records)).mark_line(interpolate="step-after", strokeWidth=1.5)
        yield lines.encode(**encoded).properties(width=WIDTH_PX, height=HEIGHT_PX)
    rows = [{"group": group, "time": vega_time(at), "value": value} for group, at, value in points]
    tooltip = [alt.Tooltip("time:N"), alt.Tooltip("group:N"), alt.Tooltip("value:Q", title=name)]
    dots = alt.Chart(alt.Data(values=rows)).mark_circle(size=22, opacity=1)
    yield dots.encode(**encoded, tooltip=tooltip).properties(width=WIDTH_PX, height=HEIGHT_PX)


def _value_axis(alt: Any, name: str, function: str, values: list[float | None]) -> Any:
    """Return the y axis: counts and sums start at zero; if another measure does not, its title gives the range."""
    heights = [value for value in values if value is not None]
    if function in FROM_ZERO or not heights or min(heights) <= 0 <= max(heights) or min(heights) < max(heights) / 2:
        is_small_count = function == "COUNT" and max(heights, default=0.0) <= MAX_INTEGER_TICKS
        ticks = {"values": list(range(int(max(heights, default=0.0)) + 1)), "format": "d"} if is_small_count else {}
        return alt.Y("value:Q", title=name, scale=alt.Scale(zero=True), axis=alt.Axis(**ticks))
    title = [name, f"{min(heights):.4g} to {max(heights):.4g}"]
    return alt.Y("value:Q", title=title, scale=alt.Scale(zero=False))
