"""Draw a result with Altair, or save the chart to a file. Altair is imported when something is drawn.

The schema of a result is signed with its query, so that a table or a Parquet file can be drawn without giving both.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from streamsift.errors import SetupError
from streamsift.logical.bound import BoundQuery
from streamsift.view.charts import aggregates, ranking
from streamsift.view.timeline import timeline

if TYPE_CHECKING:
    import altair as alt

MAX_MATCHES = 40  # rows of a timeline: more do not fit on a screen
MAX_ROWS = 20_000  # of a result, for a chart
ENDINGS = (".svg", ".png", ".html")
INSTALL = "\nHint: pip install 'streamsift[plot]'"
SIGNATURE = b"streamsift"


def signed(schema: pa.Schema, query: str, time: str) -> pa.Schema:
    """Add query and time column as metadata, which takes no part in equality of schemas and which Parquet keeps."""
    return schema.with_metadata({SIGNATURE: json.dumps({"query": query, "time": time}).encode()})


def origin(schema: pa.Schema) -> tuple[str | None, str | None]:
    """Return the query that a table is the result of, and the column that was its time; None if it is not signed."""
    signature = json.loads((schema.metadata or {}).get(SIGNATURE, "{}"))
    return signature.get("query"), signature.get("time")


def picture(
    result: pa.Table, query: BoundQuery | None = None, *, time: str | None = None, key: str | None = None
) -> alt.TopLevelMixin:
    """Draw what fits a result: lines for aggregates, a bump chart or bars for rankings, else a timeline."""
    check_altair()
    names = result.column_names
    if "rank" in names and "score" in names:
        return ranking(result, query)
    if "time" in names and "match_start" not in names:
        return aggregates(result)
    return timeline(result.slice(0, MAX_MATCHES), query, time, key, result.num_rows)


def check_altair() -> None:
    try:
        import altair  # noqa: F401
    except ImportError as error:
        raise SetupError(f"pictures need Altair, which is not installed{INSTALL}") from error


def check_picture_file(path: Path) -> None:
    """Raise, before anything runs, if the chart could not be written."""
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
    file_format = path.suffix.lower().lstrip(".")
    chart.save(str(path), format=file_format, **({"scale_factor": 2} if file_format == "png" else {}))
