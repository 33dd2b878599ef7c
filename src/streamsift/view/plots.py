"""Choose the chart that fits a result, and save it to a file. Altair is imported only to draw.

The schema of a result is signed with its query, so a table or a Parquet file can be drawn without naming the query.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any
from weakref import WeakKeyDictionary

import pyarrow as pa

from streamsift.errors import SetupError
from streamsift.logical.bound import BoundQuery
from streamsift.view.aggregates import aggregates
from streamsift.view.rankings import ranking
from streamsift.view.timeline import timeline

if TYPE_CHECKING:
    from streamsift.view.offline import Layers, Panels

MAX_MATCHES = 40  # rows of a timeline: more do not fit on a screen
MAX_ROWS = 20_000  # of a result, for a chart
SUFFIXES = (".svg", ".png", ".html")
INSTALL = "\nHint: pip install 'streamsift[plot]'"
SIGNATURE = b"streamsift"
_FRAMES: WeakKeyDictionary[Any, tuple[str, str]] = WeakKeyDictionary()


def signed(schema: pa.Schema, query: str, time: str) -> pa.Schema:
    """Add the query and its time column as metadata, which Parquet keeps and schema equality ignores."""
    return schema.with_metadata({SIGNATURE: json.dumps({"query": query, "time": time}).encode()})


def origin(schema: pa.Schema) -> tuple[str | None, str | None]:
    """Return the query that a table is the result of, and its time column; None if the schema is not signed."""
    signature = json.loads((schema.metadata or {}).get(SIGNATURE, "{}"))
    return signature.get("query"), signature.get("time")


def sign_frame(frame: Any, query: str, time: str) -> Any:
    """Remember the query and the time column of a Spark DataFrame, which has no metadata; return the DataFrame."""
    _FRAMES[frame] = (query, time)
    return frame


def frame_origin(frame: Any) -> tuple[str | None, str | None]:
    """Return the query that a Spark DataFrame is the result of, and its time column; None if it is not signed."""
    return _FRAMES.get(frame, (None, None))


def plot_result(result: pa.Table, query: BoundQuery | None = None, *, time: str | None = None) -> Layers | Panels:
    """Draw lines or points for aggregates, a bump chart or scores for rankings, and a timeline for matches."""
    check_altair()
    names = result.column_names
    if "rank" in names and "score" in names:
        return ranking(result, query)
    if "time" in names and "match_start" not in names:
        return aggregates(result, query)
    return timeline(result.slice(0, MAX_MATCHES), query, time=time, total=result.num_rows)


def check_altair() -> None:
    """Raise SetupError if a package that draws charts is missing."""
    try:
        import altair  # noqa: F401
        import vl_convert  # noqa: F401
    except ImportError as error:
        raise SetupError(f"charts need {error.name}, which is not installed{INSTALL}") from error


def check_plot_file(path: Path) -> None:
    """Raise SetupError, before anything runs, if the chart could not be written."""
    if path.suffix.lower() not in SUFFIXES:
        expected = f"{', '.join(SUFFIXES[:-1])} or {SUFFIXES[-1]}"
        raise SetupError(f"cannot write a chart to {path.name}\nHint: use a file name that ends in {expected}.")
    check_altair()


def save_plot(result: pa.Table, query: BoundQuery | None, path: Path) -> None:
    """Draw a result and write the chart to a file whose suffix is the format."""
    chart: Any = plot_result(result, query, time=origin(result.schema)[1])
    from streamsift.view.offline import save

    save(chart, path)
