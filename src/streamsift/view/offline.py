"""Make Altair charts work without a network, in notebooks and in HTML files.

A notebook gets the chart as Vega-Lite and as a PNG: front ends that know Vega-Lite draw it, all others show the image.
HTML files contain the JavaScript that draws them. Import this module only to draw: it imports Altair.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import altair as alt

PNG_SCALE = 2.0  # pixels of the image for each pixel on the screen
# JupyterLab and VS Code draw the versions that they were built with; our charts are valid in both.
VEGALITE_VERSIONS = (5, 6)


class _Offline:
    """Override how an Altair chart is displayed and saved."""

    def _repr_mimebundle_(self, *args: Any, **options: Any) -> Any:
        chart: Any = super()
        if alt.renderers.active != "default":
            return chart._repr_mimebundle_(*args, **options)  # the user has chosen a renderer
        return mime_bundle(chart.to_dict(context={"pre_transform": False}))

    def save(self, fp: Any, format: str | None = None, **options: Any) -> None:
        if format == "html" or (format is None and str(fp).lower().endswith(".html")):
            options.setdefault("inline", True)
        chart: Any = super()
        chart.save(fp, format, **options)


class Layers(_Offline, alt.LayerChart):  # type: ignore[misc]  # save() takes fewer named arguments
    """Charts on top of each other."""


class Panels(_Offline, alt.VConcatChart):  # type: ignore[misc]
    """Charts below each other."""


def mime_bundle(spec: dict[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return what a notebook stores of a chart, and the size at which it shows the image."""
    import vl_convert

    png = vl_convert.vegalite_to_png(json.dumps(spec), scale=PNG_SCALE)
    width, height = (int.from_bytes(png[at : at + 4], "big") / PNG_SCALE for at in (16, 20))  # its header has the size
    bundle: dict[str, Any] = {"image/png": png, "text/plain": "<Streamsift chart>"}
    for version in VEGALITE_VERSIONS:
        schema = f"https://vega.github.io/schema/vega-lite/v{version}.json"
        bundle[f"application/vnd.vegalite.v{version}+json"] = {**spec, "$schema": schema}
    return bundle, {"image/png": {"width": round(width), "height": round(height)}}


def save(chart: Any, path: Path) -> None:
    """Write a chart to a file whose suffix is the format."""
    file_format = path.suffix.lower().lstrip(".")
    chart.save(str(path), file_format, **({"scale_factor": PNG_SCALE} if file_format == "png" else {}))
