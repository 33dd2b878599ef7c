"""Draw a result with Altair, or save the chart to a file. Altair is imported when something is drawn."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from streamsift.errors import SetupError
from streamsift.logical.bound import BoundQuery

if TYPE_CHECKING:
    import altair as alt

MAX_MATCHES = 40  # rows of a timeline: more do not fit on a screen
MAX_ROWS = 20_000  # of a result, that a picture is made of
ENDINGS = (".svg", ".png", ".html")
INSTALL = "\nHint: pip install 'streamsift[plot]'"


def picture(
    result: pa.Table, query: BoundQuery | None = None, *, time: str | None = None, key: str | None = None
) -> alt.TopLevelMixin:
    """Draw what fits a result: lines for aggregates, a bump chart or bars for rankings, else a timeline."""
    check_altair()
    names = result.column_names
    if "rank" in names and "score" in names:
        from streamsift.view.charts import ranking

        return ranking(result, query)
    if "time" in names and "match_start" not in names:
        from streamsift.view.charts import aggregates

        return aggregates(result)
    from streamsift.view.timeline import timeline

    return timeline(result.slice(0, MAX_MATCHES), query, time, key, result.num_rows)


def check_altair() -> None:
    try:
        import altair  # noqa: F401
    except ImportError as error:
        raise SetupError(f"pictures need Altair, which is not installed{INSTALL}") from error


def check_picture_file(path: Path) -> None:
    """Raise before anything runs what would keep the picture from being written."""
    if path.suffix.lower() not in ENDINGS:
        raise SetupError(f"a picture's file ends in {', '.join(ENDINGS[:-1])} or {ENDINGS[-1]}, not {path.name}")
    check_altair()
    if path.suffix.lower() != ".html":
        try:
            import vl_convert  # noqa: F401
        except ImportError as error:
            raise SetupError(f"{path.suffix} files need vl-convert, which is not installed{INSTALL}") from error


def save_picture(result: pa.Table, query: BoundQuery | None, path: Path) -> None:
    chart: Any = picture(result, query)
    chart.save(
        str(path),
        format=path.suffix.lower().lstrip("."),
        **({"scale_factor": 2} if path.suffix.lower() == ".png" else {}),
    )
