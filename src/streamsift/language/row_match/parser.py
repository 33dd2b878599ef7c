"""Parse MATCH_RECOGNIZE into a syntax tree; raise QuerySyntaxError if it does not parse."""

from __future__ import annotations

import re
from functools import cache, lru_cache
from importlib.resources import files

from lark import Lark
from lark.exceptions import UnexpectedInput, VisitError

from streamsift.errors import QuerySyntaxError
from streamsift.language.row_match.mistakes import syntax_error
from streamsift.language.row_match.syntax import RowScript
from streamsift.language.row_match.tokens import KEYWORDS, RowContextualizer
from streamsift.language.row_match.tree import RowTreeBuilder

_START = re.compile(r"(?:\s|--[^\n]*(?:\n|\Z)|/\*.*?\*/)*MATCH_RECOGNIZE\b", re.IGNORECASE | re.DOTALL)


def is_match_recognize(text: str) -> bool:
    """Return True if a query starts with the word MATCH_RECOGNIZE."""
    return _START.match(text) is not None


def parse_rows(text: str) -> RowScript:
    """Return the syntax tree of `MATCH_RECOGNIZE (…) [AS m]`, or of the text between the parentheses."""
    if not isinstance(text, str):
        raise TypeError(f"a query must be a string, not {text!r}")
    try:
        return _tree(text)
    except UnexpectedInput as error:
        raise syntax_error(error, text) from None
    except (VisitError, RecursionError) as error:
        cause = error.orig_exc if isinstance(error, VisitError) else error
        if isinstance(cause, RecursionError):
            cause = QuerySyntaxError("the clause is nested too deeply", hint="remove redundant brackets.")
        raise cause from None


@cache
def _lark() -> Lark:
    grammar = files("streamsift.language.row_match").joinpath("grammar.lark").read_text(encoding="utf-8")
    return Lark(
        f"{grammar}\n%declare {' '.join(sorted(KEYWORDS))}\n",
        parser="lalr",
        lexer="basic",
        postlex=RowContextualizer(),
        propagate_positions=True,
        maybe_placeholders=True,
        start="script",
    )


@lru_cache(maxsize=256)
def _tree(text: str) -> RowScript:
    script: RowScript = RowTreeBuilder(text).transform(_lark().parse(text))
    return script
