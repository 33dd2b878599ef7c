"""Parse query text into a syntax tree; raise QuerySyntaxError if it does not parse."""

from __future__ import annotations

from functools import cache, lru_cache
from importlib.resources import files
from typing import Any

from lark import Lark
from lark.exceptions import UnexpectedInput, VisitError

from streamsift.errors import QuerySyntaxError, Span
from streamsift.language import syntax
from streamsift.language.keywords import GRAMMAR_WORDS
from streamsift.language.mistakes import syntax_error
from streamsift.language.tokens import Contextualizer
from streamsift.language.tree import TreeBuilder, written_clauses


def parse(text: str) -> syntax.Script:
    """Return the syntax tree of a whole script: definitions, then one statement."""
    return _parse(text, "script")  # type: ignore[no-any-return]


def parse_expression(text: str) -> syntax.Expression:
    """Return the syntax tree of an expression or predicate alone."""
    return _parse(text, "predicate")  # type: ignore[no-any-return]


def parse_clauses(text: str) -> dict[str, Any]:
    """Return the fields of a Statement that one or more clauses set, by field name."""
    pattern = "ANY "  # the grammar requires a pattern before clauses
    try:
        return written_clauses(_parse(pattern + text, "script").statement)
    except QuerySyntaxError as error:
        span = Span(error.span.start - len(pattern), error.span.end - len(pattern))
        raise QuerySyntaxError(error.message, text, span, error.hint) from None


@cache
def _lark() -> Lark:
    # Read as a package resource, because Spark's --py-files is a zip archive.
    grammar = files("streamsift.language").joinpath("grammar.lark").read_text(encoding="utf-8")
    return Lark(
        f"{grammar}\n%declare {' '.join(sorted(GRAMMAR_WORDS))}\n",
        parser="lalr",
        lexer="basic",
        postlex=Contextualizer(),
        propagate_positions=True,
        maybe_placeholders=True,
        start=["script", "predicate"],
    )


@lru_cache(maxsize=256)  # trees are immutable, and programs parse the same few queries repeatedly
def _tree(text: str, start: str) -> Any:
    return TreeBuilder(text).transform(_lark().parse(text, start=start))


def _parse(text: str, start: str) -> Any:
    if not isinstance(text, str):
        raise TypeError(f"a query must be a string, not {text!r}")
    try:
        return _tree(text, start)
    except UnexpectedInput as error:
        raise syntax_error(error, text, start) from None
    except (VisitError, RecursionError) as error:
        cause = error.orig_exc if isinstance(error, VisitError) else error
        if isinstance(cause, RecursionError):
            cause = QuerySyntaxError(
                "the query is nested too deeply", hint="remove redundant brackets, or split the query."
            )
        raise cause from None
