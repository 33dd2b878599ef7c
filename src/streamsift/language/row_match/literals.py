"""Read string literals and intervals of Spark SQL."""

from __future__ import annotations

import re
from decimal import Decimal
from fractions import Fraction

from streamsift.language import syntax as s

_SECONDS = {"MICROSECOND": Fraction(1, 10**6), "MILLISECOND": Fraction(1, 1000), "SECOND": Fraction(1),
            "MINUTE": Fraction(60), "HOUR": Fraction(3600), "DAY": Fraction(86400),
            "WEEK": Fraction(604800)}  # fmt: skip
_UNITS = {"MILLISECOND": s.Unit.MILLISECOND, "SECOND": s.Unit.SECOND, "MINUTE": s.Unit.MINUTE, "HOUR": s.Unit.HOUR,
          "DAY": s.Unit.DAY}  # fmt: skip
_ESCAPES = {"n": "\n", "t": "\t", "r": "\r", "0": "\0", "b": "\b", "Z": "\x1a"}


def unquote(text: str) -> str:
    """Return the value of a string literal of Spark SQL."""

    def value(match: re.Match[str]) -> str:
        written = match.group()
        if written[0] == "\\":
            if len(written) == 6:
                return chr(int(written[2:], 16))
            # A backslash before a wildcard of LIKE stays.
            return written if written[1] in "%_" else _ESCAPES.get(written[1], written[1])
        return written[0]

    quote = text[0]
    return re.sub(rf"\\u[0-9a-fA-F]{{4}}|\\.|{quote}{quote}", value, text[1:-1], flags=re.DOTALL)


def duration_of(text: str) -> s.Duration | None:
    """Return the duration of `INTERVAL '1' HOUR` and its other forms; None if its length is not fixed, as of a month.

    >>> duration_of("INTERVAL '1:30' HOUR TO MINUTE"), duration_of("INTERVAL '2' MONTH")
    (Duration(value=90, unit=<Unit.MINUTE: 'min'>), None)
    """
    words = text.replace("'", " ").replace('"', " ").upper().split()[1:]
    if "TO" in words:
        total = _compound(words)
    else:
        joined = " ".join(words).replace("- ", "-").replace("+ ", "+").split()
        pairs = list(zip(joined[0::2], joined[1::2], strict=False))
        if not pairs or len(joined) % 2 or any(unit.rstrip("S") not in _SECONDS for _, unit in pairs):
            return None
        try:
            if len(pairs) == 1 and (unit := _UNITS.get(pairs[0][1].rstrip("S"))) is not None:
                number = pairs[0][0]
                return s.Duration(int(number) if number.lstrip("+-").isdigit() else Decimal(number), unit)
            total = sum((Fraction(number) * _SECONDS[unit.rstrip("S")] for number, unit in pairs), Fraction(0))
        except (ValueError, ArithmeticError):
            return None
    return None if total is None else in_unit(total)


def in_unit(seconds: Fraction) -> s.Duration:
    """Return a duration in the largest unit of which it is a whole number, else in seconds."""
    for unit in ("DAY", "HOUR", "MINUTE", "SECOND", "MILLISECOND"):
        if (number := seconds / _SECONDS[unit]).denominator == 1:
            return s.Duration(int(number), _UNITS[unit])
    return s.Duration(Decimal(seconds.numerator) / Decimal(seconds.denominator) * 1000, s.Unit.MILLISECOND)


def _compound(words: list[str]) -> Fraction | None:
    """Return the seconds of `1 02:03:04.5 DAY TO SECOND`, given its words."""
    to = words.index("TO")
    units = ["DAY", "HOUR", "MINUTE", "SECOND"]
    first, last = words[to - 1].rstrip("S"), words[to + 1].rstrip("S")
    if first not in units or last not in units:
        return None
    written = " ".join(words[: to - 1])
    sign = -1 if written.strip().startswith("-") else 1
    numbers = re.split(r"[ :]+", written.strip().lstrip("+-").strip())
    expected = units[units.index(first) : units.index(last) + 1]
    if len(numbers) != len(expected):
        return None
    try:
        return sign * sum((Fraction(n) * _SECONDS[u] for n, u in zip(numbers, expected, strict=True)), Fraction(0))
    except ValueError:
        return None
