"""Draw rankings with Altair: a bump chart across windows, or the score of each match."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from math import isfinite
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from streamsift.logical import bound as b
from streamsift.view.axes import COLORS, WIDTH_PX, length_of, moment, subtitle, time_axis, time_title, vega_time
from streamsift.view.tables import cell_text
from streamsift.view.timeline import event_columns

if TYPE_CHECKING:
    from streamsift.view.offline import Layers, Panels

MAX_NAMED = 8  # matches with a color of their own
MAX_RANKS = 10  # in a bump chart
MAX_WINDOWS = 24  # next to each other
MAX_SCORES = 40  # below each other
MAX_GROUPS = 4  # bump charts below each other
GRAY = "#d0d0d0"
Record = dict[str, Any]


def ranking(rows: pa.Table, query: b.BoundQuery | None) -> Layers | Panels:
    """Draw a bump chart if the result has windows, a panel for each group; otherwise the score of each match."""
    import altair as alt

    groups = rows.column_names[: rows.column_names.index("rank")]
    groups = [name for name in groups if name != "window_end"]
    objective, sign = _objective(query)
    records = [
        {"rank": rank, "score": None if score is None or not isfinite(score) else sign * score, "match": match}
        for rank, score, match in zip(
            rows.column("rank").to_pylist(),
            rows.column("score").to_pylist(),
            _labels(rows, query, [] if "window_end" in rows.column_names else groups),
            strict=True,
        )
    ]
    if "window_end" not in rows.column_names:
        return _scores(alt, records, objective, is_lower_better=sign < 0)
    ends = [moment(value) for value in rows.column("window_end").to_pylist()]
    names = [""] * len(ends)
    if groups:
        names = [" · ".join(map(cell_text, row.values())) for row in rows.select(groups).to_pylist()]
    records = [{**record, "end": end, "group": name} for record, end, name in zip(records, ends, names, strict=True)]
    step = length_of(query.update, next(iter(ends), None)) if query else None
    title = time_title("window end", rows.schema.field("window_end").type)
    return _bump_charts(alt, records, step, title, objective)


def _objective(query: b.BoundQuery | None) -> tuple[str, int]:
    """Return the title of the scores, and -1 if the objective is minimized: such a score is the negated value."""
    ranking = query.ranking if query else None
    if ranking is None or len(ranking.objectives) != 1:
        return "score (higher is better)", 1
    (objective,) = ranking.objectives
    better = "higher" if objective.maximise else "lower"
    return f"{objective.name} ({better} is better)", 1 if objective.maximise else -1


def _scores(alt: Any, records: list[Record], title: str, *, is_lower_better: bool) -> Layers:
    """Draw scores as bars if longer is better and they start at zero; otherwise as points.

    The shortest bar would be the best one if lower is better.
    """
    from streamsift.view.offline import Layers

    values = [{**r, "row": f"{n}|{r['rank']} · {r['match']}"} for n, r in enumerate(records[:MAX_SCORES])]
    axis = alt.Axis(labelExpr="slice(datum.value, indexof(datum.value, '|') + 1)", labelLimit=360, ticks=False)
    are_bars = not is_lower_better and all(r["score"] is not None and r["score"] >= 0 for r in values)
    base = alt.Chart(alt.Data(values=values)).encode(
        x=alt.X("score:Q", title=title, scale=alt.Scale(zero=are_bars), axis=alt.Axis(tickCount=8)),
        y=alt.Y("row:N", sort=[r["row"] for r in values], title="rank · match", axis=axis),
        tooltip=["rank:Q", "match:N", alt.Tooltip("score:Q", title=title)],
    )
    marks = base.mark_bar(color=COLORS[0], opacity=0.7) if are_bars else base.mark_circle(color=COLORS[0], size=90)
    omitted = f"the first {MAX_SCORES} of {len(records):,} rows" if len(records) > MAX_SCORES else ""
    width = WIDTH_PX - 180  # the names of the matches need room
    return Layers(layer=[marks], title=subtitle(alt, omitted)).properties(width=width, height=alt.Step(20))


def _bump_charts(alt: Any, records: list[Record], step: Any, title: str, objective: str) -> Layers | Panels:
    from streamsift.view.offline import Panels

    by_group: dict[str, list[Record]] = {}
    for record in records:
        by_group.setdefault(record["group"], []).append(record)
    charts = [_bump_chart(alt, of_group, step, (title, objective)) for of_group in by_group.values()]
    if list(by_group) in ([], [""]):
        return charts[0] if charts else _bump_chart(alt, [], step, (title, objective))
    named = [chart.properties(title=name) for name, chart in zip(by_group, charts[:MAX_GROUPS], strict=False)]
    omitted = f"the first {MAX_GROUPS} of {len(charts):,} groups" if len(charts) > MAX_GROUPS else ""
    return Panels(vconcat=named, title=subtitle(alt, omitted)).resolve_scale(color="independent")


def _bump_chart(alt: Any, records: list[Record], step: Any, titles: tuple[str, str]) -> Layers:
    """Draw the last windows: matches that stay longest, and of those the best, in color; the others in gray."""
    from streamsift.view.offline import Layers

    windows = sorted({record["end"] for record in records})
    ranks = max((record["rank"] for record in records), default=0)
    shown = [r for r in records if r["end"] in windows[-MAX_WINDOWS:] and r["rank"] <= MAX_RANKS]
    counts, best = Counter(r["match"] for r in shown), {r["match"]: r["rank"] for r in reversed(shown)}
    named = sorted(counts, key=lambda m: (-counts[m], best[m], m))[:MAX_NAMED]
    others = f"{len(counts) - len(named):,} other matches"
    values = [
        {**r, "window": vega_time(r["end"]), "color": r["match"] if r["match"] in named else others}
        for r in _with_stays(shown, step)
    ]
    for value in values:
        del value["end"]
    has_others = len(counts) > len(named)
    legend = alt.Legend(title="match", labelLimit=340, orient="bottom", columns=2, symbolOpacity=1)
    scale = alt.Scale(domain=[*named, others][: len(named) + has_others], range=[*COLORS[: len(named)], GRAY])
    encoded = {
        "x": time_axis(alt, windows[-MAX_WINDOWS:], titles[0])("window"),
        "y": alt.Y("rank:O", title="rank"),
        "color": alt.Color("color:N", scale=scale, legend=legend),
        "detail": "stay:N",
        "tooltip": ["window:N", "rank:Q", alt.Tooltip("score:Q", title=titles[1]), "match:N"],
    }

    def layers(rows: list[Record]) -> Iterator[Any]:
        base = alt.Chart(alt.Data(values=rows)).encode(**encoded)
        yield base.mark_line(strokeWidth=2.5)
        yield base.mark_circle(size=90, opacity=1)

    notes = (
        f"the last {MAX_WINDOWS} of {len(windows):,} windows with a match" if len(windows) > MAX_WINDOWS else "",
        f"ranks 1 to {MAX_RANKS} of {ranks:,}" if ranks > MAX_RANKS else "",
    )
    gray = layers([v for v in values if v["color"] == others]) if has_others else ()
    chart = Layers(layer=[*gray, *layers([v for v in values if v["color"] != others])])
    return chart.properties(width=WIDTH_PX, height=alt.Step(34), title=subtitle(alt, *notes))


def _with_stays(records: list[Record], step: Any) -> list[Record]:
    """Number the stays of matches among the best: a line ends if its match is missing from the next window.

    With UPDATE by time, the next window is one step later, even if that window has no row. Two matches of one name are
    distinguished by their scores, or, if these are equal, by their ranks.
    """
    stays: dict[tuple[str, float | None, int], tuple[int, int]] = {}  # the last window of a match, and its stay
    with_stays: list[Record] = []
    number, previous = 0, None
    for end in sorted({record["end"] for record in records}):
        has_gap = step is not None and previous is not None and end - previous > step * 1.5
        number, previous = number + 1 + has_gap, end
        namesakes: Counter[tuple[str, float | None]] = Counter()
        for record in sorted((r for r in records if r["end"] == end), key=lambda r: r["rank"]):
            name = (record["match"], record["score"])
            key = (*name, namesakes[name])
            namesakes[name] += 1
            last, stay = stays.get(key, (-2, -1))
            stays[key] = number, stay if last == number - 1 else len(with_stays)
            with_stays.append({**record, "stay": stays[key][1]})
    return with_stays


def _labels(rows: pa.Table, query: b.BoundQuery | None, groups: list[str]) -> list[str]:
    """Return a short name for each match: its group and returned values, or the first values of its events."""
    events = event_columns(rows.schema)
    objectives = {o.name for o in query.ranking.objectives} if query is not None and query.ranking else set()
    before_rank = rows.column_names[: rows.column_names.index("rank")]
    skipped = {*before_rank, "rank", "score", "match_start", "match_end", *objectives, *events}
    columns = [*groups, *(name for name in rows.column_names if name not in skipped)]
    return [
        " · ".join([*(cell_text(r[c]) for c in columns[:4]), *(_event_label(r[e]) for e in events[:3])])
        for r in rows.select([*columns, *events]).to_pylist()
    ] or [""] * rows.num_rows


def _event_label(event: Any) -> str:
    """Return the first values of an event: most tables have the time and the key in front."""
    if isinstance(event, list):
        return f"{len(event)} events"
    return "-" if event is None else " ".join(cell_text(v) for v in list(event.values())[:2])
