"""Every error a user can meet, each with what went wrong, where (line and caret) and what to do."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from difflib import get_close_matches


@dataclass(frozen=True, slots=True)
class Span:
    """A half-open range of character offsets in a query's text."""

    start: int
    end: int

    def to(self, other: Span) -> Span:
        return Span(min(self.start, other.start), max(self.end, other.end))


NOWHERE = Span(0, 0)


class StreamsiftError(Exception):
    """The base of everything Streamsift raises on purpose."""


class LocatedError(StreamsiftError):
    """An error at a place in a query's text, shown with the line and a caret under it."""

    def __init__(self, message: str, text: str = "", span: Span = NOWHERE, hint: str = "") -> None:
        self.message, self.text, self.span, self.hint = message, text, span, hint
        super().__init__(render(message, text, span, hint))

    def __reduce__(self) -> tuple[type[LocatedError], tuple[str, str, Span, str]]:
        # An error raised in a Spark worker must reach the driver whole.
        return type(self), (self.message, self.text, self.span, self.hint)


class QueryError(LocatedError, ValueError):
    """The query parses but makes no sense: an unknown name, a type mismatch, a forbidden combination."""


class QuerySyntaxError(QueryError):
    """The query's text does not parse."""


class UnsupportedQuery(LocatedError, NotImplementedError):
    """A meaningful query that this version's engine cannot evaluate: refused rather than answered wrongly."""


class BadInputError(StreamsiftError, ValueError):
    """The data cannot be used as bound: null or unparseable times, a null order, a value out of range."""


class SetupError(StreamsiftError):
    """Something outside the query is missing: a file, Java, an optional package."""


class BadRowsWarning(UserWarning):
    """Rows were dropped because `bad_rows="drop"` was asked for."""


def render(message: str, text: str, span: Span, hint: str) -> str:
    """The message, the line of `text` that holds `span` with carets under it, and the hint."""
    parts = [message]
    if text:
        start = min(max(span.start, 0), len(text))
        line_start = text.rfind("\n", 0, start) + 1
        line_end = text.find("\n", start)
        line_end = len(text) if line_end < 0 else line_end
        number = text.count("\n", 0, start) + 1
        gutter = f"{number:>4} | "
        width = max(1, min(span.end, line_end) - start)
        # Tabs keep their place above the caret so that it stays under what it points at.
        pad = "".join("\t" if c == "\t" else " " for c in text[line_start:start])
        parts[0] += f" (line {number}, column {start - line_start + 1})"
        parts += [gutter + text[line_start:line_end], " " * (len(gutter) - 2) + "| " + pad + "^" * width]
    if hint:
        parts.append(f"Hint: {hint}")
    return "\n".join(parts)


def nearest(name: str, known: Iterable[str]) -> str:
    """A 'did you mean' sentence for the closest known name, or the known names if there are few, or nothing."""
    names = sorted(set(known))
    folded = {n.lower(): n for n in names}
    close = get_close_matches(name.lower(), folded, n=1, cutoff=0.6)
    if close:
        return f"did you mean `{folded[close[0]]}`?"
    if 0 < len(names) <= 12:
        return "known here: " + ", ".join(f"`{n}`" for n in names) + "."
    return ""
