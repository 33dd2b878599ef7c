"""Draw aggregates and rankings with Altair: lines over time, bump charts across windows, bars."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from math import inf, isfinite
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from streamsift.errors import QueryError
from streamsift.logical import bound as b
from streamsift.logical.columns import kind_of
from streamsift.view.tables import cell_text
from streamsift.view.timeline import COLORS, WIDTH_PX, event_columns, moment, note, plain, time_axis

if TYPE_CHECKING:
    import altair as alt

MAX_GROUPS = 8  # lines that can be distinguished
MAX_STEPS = 10  # of a bump chart
MAX_WINDOWS = 24  # beside each other


def aggregates(rows: pa.Table) -> alt.VConcatChart | alt.Chart:
    """Draw a panel for each measure, a line for each group; of many groups, those with the largest values."""
    import altair as alt

    measures, groups = _measures(rows)
    if not measures:
        raise QueryError("there is no measure to draw in this result", hint="plot() draws what AGG or PREF gives.")
    values, omitted = _by_group(rows, measures, groups)
    panels = [_panel(alt, values, measure, bool(groups)) for measure in measures]
    chart = panels[0] if len(panels) == 1 else alt.vconcat(*panels)
    return chart.properties(title=note(alt, omitted)) if omitted else chart


def _measures(rows: pa.Table) -> tuple[list[str], list[str]]:
    """Return which columns are measures, and which name the group: those between `time` and the first measure.

    A measure is called `count`, `sum_…` and so on, or comes after such a one; if all have names that the query gives,
    the columns of numbers are the measures.
    """
    names = [name for name in rows.column_names if name != "time"]
    numeric = [name for name in names if kind_of(rows.schema.field(name).type) in b.NUMERIC]
    called = [name for name in names if name == "count" or name.startswith(("sum_", "avg_", "min_", "max_"))]
    first = names.index((called or numeric)[0]) if called or numeric else len(names)
    return [name for name in names[first:] if name in numeric], names[:first]


def _by_group(rows: pa.Table, measures: list[str], groups: list[str]) -> tuple[list[dict[str, Any]], str]:
    """Return the rows as records with a label for their group, and a note on omitted rows."""
    heights: dict[str, float] = {}
    records = []
    for row in rows.to_pylist():
        label = " · ".join(cell_text(row[name]) for name in groups)
        values = {name: _float(row[name]) for name in measures}
        height = row[measures[0]]
        heights[label] = max(heights.get(label, -inf), -inf if height is None else float(height))
        at = None if row["time"] is None else plain(moment(row["time"]))
        records.append({"time": at, "group": label, **values})
    highest = sorted(heights, key=lambda label: -heights[label])[:MAX_GROUPS]
    omitted = f"the {MAX_GROUPS} of {len(heights):,} groups with the highest {measures[0]}"
    kept = [record for record in records if record["group"] in highest]
    return kept, omitted if len(heights) > MAX_GROUPS else ""


def _float(value: Any) -> float | None:
    return float(value) if value is not None and isfinite(value) else None


def _panel(alt: Any, values: list[dict[str, Any]], measure: str, is_grouped: bool) -> Any:
    heights = [v[measure] for v in values if v[measure] is not None]
    from_zero = not heights or min(heights) < max(heights) / 2  # temperatures around 20 are seen better without it
    encoded = {
        "x": time_axis(alt, [v["time"] for v in values], "time")("time"),
        "y": alt.Y(f"{measure}:Q", title=measure, scale=alt.Scale(zero=from_zero)),
        "tooltip": ["time:N", "group:N", f"{measure}:Q"] if is_grouped else ["time:N", f"{measure}:Q"],
    }
    if is_grouped:
        encoded["color"] = alt.Color("group:N", scale=alt.Scale(range=COLORS), legend=alt.Legend(title="group"))
    # A value holds from the moment it is reported until the next one.
    line = {"interpolate": "step-after", "point": alt.OverlayMarkDef(size=14)}
    mark = alt.Chart(alt.Data(values=values)).mark_line(**line, **({} if is_grouped else {"color": COLORS[0]}))
    return mark.encode(**encoded).properties(width=WIDTH_PX, height=180)


def ranking(rows: pa.Table, query: b.BoundQuery | None) -> alt.TopLevelMixin:
    """Draw a bump chart of ticks, a line for each match from window to window; without ticks, a bar for each score."""
    import altair as alt

    ranks, scores = rows.column("rank").to_pylist(), map(_float, rows.column("score").to_pylist())
    values = [
        {"rank": rank, "score": score, "match": match}
        for rank, score, match in zip(ranks, scores, _labels(rows, query), strict=True)
    ]
    if "window_end" not in rows.column_names:
        return _bars(alt, values)
    ends = [plain(moment(v)) for v in rows.column("window_end").to_pylist()]
    windows = sorted(set(ends))
    last = windows[-MAX_WINDOWS:]
    steps = [{"window": end, **value} for end, value in zip(ends, values, strict=True) if end in last]
    steps = [step for step in steps if step["rank"] <= MAX_STEPS]
    omitted = f"the last {MAX_WINDOWS} of {len(windows):,} windows" if len(windows) > MAX_WINDOWS else ""
    return _bump_chart(alt, _with_stays(steps)).properties(title=note(alt, omitted))


def _bars(alt: Any, values: list[dict[str, Any]]) -> Any:
    base = alt.Chart(alt.Data(values=values)).encode(y=alt.Y("rank:O", title="rank"))
    tooltip = ["rank:Q", "match:N", "score:Q"]
    bars = base.mark_bar(color=COLORS[0], opacity=0.35).encode(x="score:Q", tooltip=tooltip)
    names = base.mark_text(align="left", dx=4).encode(x=alt.datum(0), text="match:N")
    return alt.layer(bars, names).properties(width=WIDTH_PX)


def _bump_chart(alt: Any, values: list[dict[str, Any]]) -> Any:
    """Draw matches that stay longest, and of those the best, in color; the others in gray, behind them."""
    windows, best = Counter(v["match"] for v in values), {v["match"]: v["score"] or 0.0 for v in values}
    named = sorted(windows, key=lambda m: (-windows[m], -best[m], m))[:MAX_GROUPS]
    legend = alt.Legend(title="match", labelLimit=340, orient="bottom", columns=2, symbolOpacity=1)
    color = alt.Color("match:N", scale=alt.Scale(domain=named, range=COLORS), legend=legend)
    axis = time_axis(alt, [v["window"] for v in values], "window end")

    def steps(rows: list[dict[str, Any]], **encoded: Any) -> Iterator[Any]:
        base = alt.Chart(alt.Data(values=rows)).encode(
            x=axis("window"),
            y=alt.Y("rank:O", title="rank"),
            detail="stay:N",
            tooltip=["window:N", "rank:Q", "score:Q", "match:N"],
            **encoded,
        )
        yield base.mark_line(strokeWidth=2.5)
        yield base.mark_circle(size=90, opacity=1)

    gray = steps([v for v in values if v["match"] not in named], color=alt.value("#d8d8d8"))
    return alt.layer(*gray, *steps([v for v in values if v["match"] in named], color=color)).properties(
        width=WIDTH_PX, height=alt.Step(34)
    )


def _with_stays(values: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Add to each value the stay it is part of: a line ends where its match is not among the best for a window.

    Two matches of one name are distinguished by their scores, or, if these are equal, by their ranks.
    """
    stays: dict[tuple[str, float | None, int], tuple[int, int]] = {}  # the last window of a match, and its stay
    with_stays: list[dict[str, Any]] = []
    for window, end in enumerate(sorted({v["window"] for v in values})):
        namesakes: Counter[tuple[str, float | None]] = Counter()
        for value in sorted((v for v in values if v["window"] == end), key=lambda v: v["rank"]):
            name = (value["match"], value["score"])
            key = (*name, namesakes[name])
            namesakes[name] += 1
            last, stay = stays.get(key, (-2, -1))
            stays[key] = window, stay if last == window - 1 else len(with_stays)
            with_stays.append({**value, "stay": stays[key][1]})
    return with_stays


def _labels(rows: pa.Table, query: b.BoundQuery | None) -> list[str]:
    """Return a short name for each match: its group and returned values, or the first values of its events."""
    events = event_columns(rows.schema)
    objectives = {o.name for o in query.ranking.objectives} if query is not None and query.ranking else set()
    skipped = {"window_end", "rank", "score", "match_start", "match_end", *objectives, *events}
    columns = [name for name in rows.column_names if name not in skipped]
    return [
        " · ".join([*(cell_text(r[c]) for c in columns[:4]), *(_event_label(r[e]) for e in events[:3])])
        for r in rows.select([*columns, *events]).to_pylist()
    ]


def _event_label(event: Any) -> str:
    """Return the first values of an event: its time and what comes next are at the front of most tables."""
    if isinstance(event, list):
        return f"{len(event)} events"
    return "-" if event is None else " ".join(cell_text(v) for v in list(event.values())[:2])
