"""Define the errors and warnings that users see: what is wrong, where (line and caret) and what to do."""

from __future__ import annotations

import os
import sys
import traceback
import warnings
from collections.abc import Iterable
from dataclasses import dataclass
from difflib import get_close_matches
from unicodedata import combining, east_asian_width


@dataclass(frozen=True, slots=True)
class Span:
    """A half-open range of character offsets in a query's text."""

    start: int
    end: int

    def to(self, other: Span) -> Span:
        return Span(min(self.start, other.start), max(self.end, other.end))


NOWHERE = Span(0, 0)
_PACKAGE = os.path.dirname(__file__) + os.sep


class StreamsiftError(Exception):
    """The base class of all errors that Streamsift raises on purpose."""

    def _render_traceback_(self) -> list[str]:
        """Return the lines that IPython prints: the message first, then the caller's frames without ours."""
        frames = traceback.extract_tb(self.__traceback__)
        ours = next((n for n, frame in enumerate(frames) if frame.filename.startswith(_PACKAGE)), len(frames))
        # A cell magic has no line of the caller's own: IPython calls it.
        callers = [f for f in frames[:ours] if "IPython" not in f.filename and "run_cell_magic" not in (f.line or "")]
        return [f"{type(self).__name__}: {self}", "", *"".join(traceback.format_list(callers)).splitlines()]


class LocatedError(StreamsiftError):
    """An error at a place in a query's text, shown with the line and a caret under it."""

    def __init__(self, message: str, text: str = "", span: Span = NOWHERE, hint: str = "") -> None:
        self.message, self.text, self.span, self.hint = message, text, span, hint
        super().__init__(render(message, text, span, hint))

    def __reduce__(self) -> tuple[type[LocatedError], tuple[str, str, Span, str]]:
        # Keep all fields when an error of a Spark worker is pickled for the driver.
        return type(self), (self.message, self.text, self.span, self.hint)


class QueryError(LocatedError, ValueError):
    """The query parses but is invalid: an unknown name, a type mismatch, clauses that exclude each other."""


class QuerySyntaxError(QueryError):
    """The query's text does not parse."""


class UnsupportedQuery(LocatedError, NotImplementedError):
    """The query is valid, but this version cannot evaluate it."""


class BadInputError(StreamsiftError, ValueError):
    """The data cannot be used: null or unparsable times, a null order, a value out of range."""


class PlanTooLargeError(StreamsiftError, MemoryError):
    """A requested plan needs more memory than a task can have."""


class MemoryLimitExceeded(StreamsiftError, MemoryError):
    """A query needs more memory than `memory_limit` allows, or than the system has."""


class SetupError(StreamsiftError):
    """Something outside the query is missing: a file, Java, an optional package."""


class StreamsiftWarning(UserWarning):
    """The base class of all warnings; `warnings.simplefilter("error", StreamsiftWarning)` turns them into errors."""


class BadRowsWarning(StreamsiftWarning):
    """Rows were dropped because of `bad_rows="drop"`."""


class UnmatchedClassWarning(StreamsiftWarning):
    """No row belongs to a class of the pattern, which may be misspelled."""


def warn(message: str, category: type[StreamsiftWarning]) -> None:
    """Issue a warning at the line outside this package that led to the call."""
    frame, level = sys._getframe(1), 2
    while frame.f_back is not None and frame.f_globals.get("__name__", "").partition(".")[0] == __package__:
        frame, level = frame.f_back, level + 1
    warnings.warn(message, category, stacklevel=level)


def render(message: str, text: str, span: Span, hint: str) -> str:
    """Return the message, the line of `text` that holds `span` with carets under it, and the hint."""
    parts = [message]
    if text:
        start = min(max(span.start, 0), len(text))
        line_start = text.rfind("\n", 0, start) + 1
        line = text[line_start:].partition("\n")[0]
        gutter = f"{text.count(chr(10), 0, start) + 1:>4} | "
        width = max(1, min(span.end, line_start + len(line)) - start)
        pad, carets = _blank(text[line_start:start]), "^" * max(1, len(_blank(text[start : start + width])))
        parts[0] += f" ({place(text, Span(start, start))})"
        parts += [gutter + line.rstrip("\r"), " " * (len(gutter) - 2) + "| " + pad + carets]
    if hint:
        parts.append(f"Hint: {hint}")
    return "\n".join(parts)


def _blank(text: str) -> str:
    """Return blanks as wide as the text on a terminal: tabs stay, wide characters take two cells, accents none."""
    return "".join("\t" if c == "\t" else " " * (2 if east_asian_width(c) in "WF" else not combining(c)) for c in text)


def place(text: str, span: Span) -> str:
    """Return `line 2, column 5`."""
    line_start = text.rfind("\n", 0, span.start) + 1
    return f"line {text.count(chr(10), 0, span.start) + 1}, column {span.start - line_start + 1}"


def with_article(noun: str) -> str:
    return f"{'an' if noun[:1].lower() in 'aeiou' else 'a'} {noun}"


def nearest(name: str, candidates: Iterable[str]) -> str:
    """Return a hint: the closest candidate, or all candidates if they are few, or nothing.

    >>> nearest("prise", ["price", "volume"])
    'did you mean `price`?'
    >>> nearest("x", ["price", "volume"])
    'use one of `price`, `volume`.'
    """
    names = sorted(set(candidates))
    folded = {n.lower(): n for n in names}
    lower = name.lower()
    close = get_close_matches(lower, folded, n=1, cutoff=0.7)
    # Similarity says little about short names: `AA` is close to `A`, and `T` to `T1`.
    close = close or [each for each in folded if lower in (each[:-1], each + each[-1:])]
    if close:
        return f"did you mean `{folded[close[0]]}`?"
    if 0 < len(names) <= 12:
        return "use one of " + ", ".join(f"`{n}`" for n in names) + "."
    return ""
