"""Query text in, syntax tree out; text that does not parse raises QuerySyntaxError at its place."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Any, NoReturn

from lark import Lark, Token
from lark.exceptions import UnexpectedCharacters, UnexpectedInput, UnexpectedToken, VisitError

from streamsift.errors import QuerySyntaxError, Span, StreamsiftError, nearest
from streamsift.language import syntax
from streamsift.language.tokens import CLAUSE_WORDS, RESERVED_WORDS, Contextualiser
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
    # A pattern must stand before clauses; its spans are of no interest here.
    return TreeBuilder.clause_fields(_parse(f"ANY {text}", "script").statement)


@cache
def _lark() -> Lark:
    grammar = (Path(__file__).parent / "grammar.lark").read_text(encoding="utf-8")
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
    try:
        tree = _lark().parse(text, start=start)
    except UnexpectedInput as error:
        _raise_syntax_error(error, text)
    try:
        return TreeBuilder(text).transform(tree)
    except VisitError as error:
        if isinstance(error.orig_exc, StreamsiftError):
            raise error.orig_exc from None
        raise


_SPELLING = {
    "NAME": "a name",
    "NUMBER": "a number",
    "STRING": "a string",
    "EQ": "`=`",
    "NE": "`!=`",
    "LT": "`<`",
    "LE": "`<=`",
    "GT": "`>`",
    "GE": "`>=`",
    "BANG": "`!`",
    "BAR": "`|`",
    "AMPERSAND": "`&`",
    "SEMICOLON": "`;`",
    "COMMA": "`,`",
    "DOT": "`.`",
    "PLUS": "`+`",
    "MINUS": "`-`",
    "STAR": "`*`",
    "SLASH": "`/`",
    "PERCENT": "`%`",
    "CARET": "`^`",
    "LPAR": "`(`",
    "RPAR": "`)`",
    "LSQB": "`[`",
    "RSQB": "`]`",
    "LBRACE": "`{`",
    "RBRACE": "`}`",
    "OBJECTIVE": "MIN[…] or MAX[…]",
    "FUNCTION": "a function",
    "UNIT": "a unit",
    "$END": "the end of the query",
}
_NEVER_LISTED = frozenset({"PREDICATE_MARK", "SEQ_DEFINITION", "SEQ_STATEMENT", "SEQ_CALL", "AND_CALL", "OR_CALL", "TOP"})
_MISTAKES = {
    "==": "equality is written `=`.",
    "&&": "write AND, or a single `&` between patterns.",
    "->": "a sequence is written `A; B` or SEQ(A, B).",
    "=>": "greater-or-equal is written `>=`.",
    "=<": "less-or-equal is written `<=`.",
}


def _raise_syntax_error(error: UnexpectedInput, text: str) -> NoReturn:
    match error:
        case UnexpectedCharacters():
            start = error.pos_in_stream or 0
            character = text[start]
            hint = {
                "'": "this string is not closed.",
                '"': "this string is not closed.",
                "`": "this backticked name is not closed.",
            }.get(character, "names with other characters go in backticks, strings in quotes.")
            raise QuerySyntaxError(f"unexpected character `{character}`", text, Span(start, start + 1), hint) from None
        case UnexpectedToken():
            token = error.token
            expected = error.accepts or error.expected
            if token.type == "$END":
                end = len(text.rstrip())
                message = "the query ends too early" if text.strip() else "the query is empty"
                raise QuerySyntaxError(message, text, Span(end, end + 1), _expected(expected)) from None
            span = _token_span(token)
            hint = _hint(token, text, expected)
            raise QuerySyntaxError(f"unexpected `{text[span.start : span.end]}`", text, span, hint) from None
        case _:
            raise error


def _token_span(token: Token) -> Span:
    start = token.start_pos or 0
    return Span(start, max(token.end_pos or 0, start + 1))


def _hint(token: Token, text: str, expected: set[str]) -> str:
    span = _token_span(token)
    for spelling, hint in _MISTAKES.items():
        for start in (span.start - 1, span.start):
            if text[max(start, 0) : start + 2] == spelling:
                return hint
    word = str(token.value).upper()
    before = text[: span.start]
    last_words = {w.upper() for w in before.split()[-1:]} | {word}
    clause_word = next(iter(last_words & CLAUSE_WORDS), None)
    if clause_word and any(before.count(o) > before.count(c) for o, c in ("()", "[]", "{}")):
        return f"a bracket before {clause_word} is not closed."
    if token.type in RESERVED_WORDS and "NAME" in expected:
        return f"{word} is a keyword; as a name it goes in backticks: `{token.value}`."
    if token.type == "NAME" and (close := nearest(word, CLAUSE_WORDS)).startswith("did you mean"):
        return close
    return _expected(expected)


def _expected(expected: set[str]) -> str:
    """At most eight of the tokens that could stand here, names and operators before clause keywords."""
    names = sorted(
        {_SPELLING.get(t, t) for t in expected if t not in _NEVER_LISTED},
        key=lambda name: (name in CLAUSE_WORDS, name),
    )
    if not names:
        return ""
    return "expected " + ", ".join(names[:8]) + (", …" if len(names) > 8 else "") + "."
