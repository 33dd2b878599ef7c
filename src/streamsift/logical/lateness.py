"""Parse the lateness of a stream: how far behind the greatest time so far an event may arrive."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

from streamsift.errors import QueryError, with_article
from streamsift.language import parse
from streamsift.language.syntax import Unit
from streamsift.logical.bound import Binding, TimeKind
from streamsift.logical.expressions import SECONDS_PER_UNIT

CALENDAR = (TimeKind.TIMESTAMP, TimeKind.TEXT, TimeKind.DATE)


def lateness_of(given: Any, binding: Binding) -> Fraction:
    """Parse `lateness=`: seconds for calendar times, else units of the time column."""
    if given is None:
        return Fraction(0)
    window = None
    if isinstance(given, str | int | float) and not isinstance(given, bool):
        window = parse(f"PATTERN A WITHIN {given}").statement.window
    if window is None or window.length.unit is Unit.EVENT or window.exclusive:
        raise QueryError(
            f"invalid value for lateness: {given!r}", hint='expected a duration such as "10 s", or a number.'
        )
    unit = window.length.unit
    if unit is not Unit.NONE and binding.time_kind not in CALENDAR:
        raise QueryError(
            f"lateness={given!r} has a unit, but `{binding.time}` is {with_article(binding.time_kind.value)} column",
            hint=f"remove the unit (lateness={window.length.value}), or use a timestamp column.",
        )
    return Fraction(window.length.value) * SECONDS_PER_UNIT.get(unit, Fraction(1))
