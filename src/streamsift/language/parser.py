"""Parse query text into a syntax tree; raise QuerySyntaxError where it does not parse."""

from __future__ import annotations

from functools import cache
from importlib.resources import files
from typing import Any

from lark import Lark
from lark.exceptions import UnexpectedInput, VisitError

from streamsift.errors import QuerySyntaxError, Span, StreamsiftError
from streamsift.language import syntax
from streamsift.language.mistakes import syntax_error
from streamsift.language.tokens import Contextualiser
from streamsift.language.tree import TreeBuilder


def parse(text: str) -> syntax.Script:
    """The syntax tree of a whole script: definitions, then one statement."""
    return _parse(text, "script")  # type: ignore[no-any-return]


def parse_pattern(text: str) -> syntax.Pattern:
    """The syntax tree of a pattern alone, as the Python builder takes it."""
    return _parse(text, "pattern")  # type: ignore[no-any-return]


def parse_expression(text: str) -> syntax.Expression:
    """The syntax tree of an expression or predicate alone."""
    return _parse(text, "predicate")  # type: ignore[no-any-return]


def parse_clauses(text: str) -> dict[str, Any]:
    """The fields of a Statement that one or more clauses set, by field name."""
    pattern = "ANY "  # one must stand before clauses
    try:
        return TreeBuilder.clause_fields(_parse(pattern + text, "script").statement)
    except QuerySyntaxError as error:
        span = Span(error.span.start - len(pattern), error.span.end - len(pattern))
        raise QuerySyntaxError(error.message, text, span, error.hint) from None


@cache
def _lark() -> Lark:
    # By its package, not by a path: Spark's --py-files is a zip.
    grammar = files("streamsift.language").joinpath("grammar.lark").read_text(encoding="utf-8")
    return Lark(
        grammar,
        parser="lalr",
        lexer="basic",
        postlex=Contextualiser(),
        propagate_positions=True,
        maybe_placeholders=True,
        start=["script", "pattern", "predicate"],
    )


def _parse(text: str, start: str) -> Any:
    if not isinstance(text, str):
        raise TypeError(f"a query is text, not {text!r}")
    try:
        tree = _lark().parse(text, start=start)
    except UnexpectedInput as error:
        raise syntax_error(error, text) from None
    try:
        return TreeBuilder(text).transform(tree)
    except VisitError as error:
        if isinstance(error.orig_exc, StreamsiftError):
            raise error.orig_exc from None
        if isinstance(error.orig_exc, RecursionError):
            raise _too_deep() from None
        raise
    except RecursionError:
        raise _too_deep() from None


def _too_deep() -> QuerySyntaxError:
    return QuerySyntaxError("the query is nested too deeply", hint="split it, or drop brackets.")
