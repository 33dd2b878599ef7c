"""Turn Lark's error into a QuerySyntaxError that says what is wrong, where, and what to do."""

from __future__ import annotations

import re
from difflib import get_close_matches

from lark import Token
from lark.exceptions import UnexpectedCharacters, UnexpectedInput, UnexpectedToken

from streamsift.errors import QuerySyntaxError, Span, place
from streamsift.language.tokens import CLAUSE_WORDS, CLOSE, RESERVED_WORDS

_SIGNS = zip("EQ BAR AMPERSAND SEMICOLON COMMA DOT LPAR RPAR LSQB RSQB RBRACE".split(), "=|&;,.()[]}", strict=True)
_SPELLING = {name: f"`{sign}`" for name, sign in _SIGNS} | {
    "NAME": "a name",
    "NUMBER": "a number",
    "STRING": "a string in quotes",
    "OBJECTIVE": "MIN[…] or MAX[…]",
    "FUNCTION": "a function",
    "UNIT": "a unit",
    "$END": "the end of the query",
}
_VALUE = frozenset("FALSE TRUE NULL TIMESTAMP LPAR MINUS LSQB FUNCTION NAME NUMBER STRING".split())
# Tokens that together are one thing to a user, the telling one first. The first row that applies takes its tokens out.
_TOGETHER: tuple[tuple[str, frozenset[str], str], ...] = (
    ("BANG", frozenset("NOT LPAR LSQB LBRACE NAME PATTERN".split()), "an event class, `!`, or a bracket"),
    ("PREDICATE_MARK", frozenset(), ""),
    ("EQ", frozenset("NE LT LE GT GE IN BETWEEN IS LIKE NOT".split()), "a comparison"),
    ("SLASH", frozenset("PERCENT CARET STAR PLUS MINUS".split()), "an arithmetic operator"),
    ("STAR", frozenset({"PLUS", "LSQB"}), "`+`, `*` or `[n]`"),
    ("PLUS", frozenset({"MINUS"}), "an arithmetic operator"),
    ("RETURN", CLAUSE_WORDS, "a clause (WHERE, WITHIN, RETURN, …)"),
)
_NEVER_LISTED = frozenset(
    "PREDICATE_MARK SEQ_DEFINITION SEQ_STATEMENT SEQ_CALL AND_CALL OR_CALL TOP EXCLUSIVE MERGE".split()
)
_LENGTH = "a length, such as 10 s, 500 or 20 EVENTS"
# What belongs after a keyword, when something else stands there.
_AFTER = {
    "AGG": "COUNT, or SUM, AVG, MIN or MAX of `variable.attribute`",
    "AS": "a name",
    "BY": "a column",
    "EMIT": "FINAL, EACH or CHANGES",
    "GROUP": "BY",
    "IN": "a list of values in parentheses",
    "IS": "NULL or NOT NULL",
    "LIKE": "a string in quotes",
    "MERGE": "SUM, AVG, MIN, MAX or PRODUCT",
    "PARTITION": "BY",
    "PATTERN": "a pattern, such as A; B or SEQ(A a, B b)",
    "PREF": "MIN[…] or MAX[…]",
    "RETURN": "a variable, a value such as a.price, or how many of the best",
    "SEQ": "a pattern, such as A; B or (A a, B b)",
    "TIMESTAMP": "a string in quotes",
    "TOP": "a number",
    "UPDATE": _LENGTH,
    "WHERE": "a predicate, such as a.price > 3",
    "WITH": "class = (predicate)",
    "WITHIN": _LENGTH,
}
_SPELT_OTHERWISE = {
    "==": "equality is written `=`.",
    "&&": "write AND, or a single `&` between patterns.",
    "->": "a sequence is written `A; B` or SEQ(A, B).",
    "=>": "greater-or-equal is written `>=`.",
    "=<": "less-or-equal is written `<=`.",
    "//": "a comment starts with `--`.",
    "/*": "a comment starts with `--`.",
    "! =": "`!=` is written without a space.",
}
_CHARACTERS = {
    "'": "this string is not closed.",
    '"': "this string is not closed.",
    "`": "this backticked name is not closed.",
    "#": "a comment starts with `--`.",
    "?": "an event that may be missing is `A*`.",
}
_OTHER_LANGUAGES = {
    "SELECT": "a query starts with PATTERN, or directly with the pattern; RETURN says what comes out.",
    "LIMIT": "the k best are PREF MAX[…] RETURN k.",
    "ORDER": "matches are ranked by PREF MAX[…] RETURN k.",
    "HAVING": "predicates, over groups too, go into WHERE.",
    "FILTER": "predicates go into WHERE.",
    "WINDOW": "a window is WITHIN 10 s, or WITHIN 20 EVENTS.",
    "EVERY": "every match is found anyway; a moving window is UPDATE.",
}
_WORD = re.compile(r"[^\W\d]\w*")
_LAST_WORD = re.compile(r"([^\W\d]\w*)\s*\Z")
_BRACKETS = {"(": ")", "[": "]", "{": "}"}
_LOOSE_BRACKET = re.compile(r"--[^\n]*|'(?:[^']|'')*'|\"(?:[^\"]|\"\")*\"|`[^`\n]*`|([()\[\]{}])")


def syntax_error(error: UnexpectedInput, text: str) -> QuerySyntaxError:
    match error:
        case UnexpectedCharacters():
            start = error.pos_in_stream or 0
            hint = _CHARACTERS.get(text[start], "names with other characters go in backticks, strings in quotes.")
            return QuerySyntaxError(f"unexpected character `{text[start]}`", text, Span(start, start + 1), hint)
        case UnexpectedToken():
            expected = frozenset(error.accepts or error.expected)
            return _early_end(text, expected) if error.token.type == "$END" else _wrong(error.token, text, expected)
        case _:
            raise error


def _early_end(text: str, expected: frozenset[str]) -> QuerySyntaxError:
    if not text.strip():
        return QuerySyntaxError("the query is empty", hint="write a pattern, such as PATTERN SEQ(A a, B b) WITHIN 10.")
    end = len(text.rstrip())
    hint = _after_keyword(text) or _unclosed(text[:end]) or _expected(expected)
    if text[:end].endswith(";"):
        hint = "`;` stands between two events; at the end leave it out."
    if "SEQ_DEFINITION" in expected and text.split(maxsplit=1)[0].upper() == "SEQ":
        hint = "definitions are followed by a statement that uses them: PATTERN …"
    return QuerySyntaxError("the query ends too early", text, Span(end, end + 1), hint)


def _wrong(token: Token, text: str, expected: frozenset[str]) -> QuerySyntaxError:
    start = token.start_pos or 0
    span, before = Span(start, max(token.end_pos or 0, start + 1)), text[:start]
    if not _open_bracket(before) and (misspelt := _misspelt_clause(text, span, expected)) is not None:
        return misspelt
    hints = (
        _spelt_otherwise(text, span),
        _closes_nothing(token, before),
        _clause_in_bracket(text, span),
        _keyword_as_name(token, expected),
        _by_token(token, before, expected),
        _after_keyword(before),
        _expected(expected),
    )
    hint = next((h for h in hints if h), "")
    return QuerySyntaxError(f"unexpected `{text[span.start : span.end]}`", text, span, hint)


def _spelt_otherwise(text: str, span: Span) -> str:
    around = text[max(span.start - 1, 0) : span.end + 2]
    return next((hint for spelling, hint in _SPELT_OTHERWISE.items() if spelling in around), "")


def _misspelt_clause(text: str, span: Span, expected: frozenset[str]) -> QuerySyntaxError | None:
    """Return an error for `A; B WHEER …`: the word was taken for B's variable, and the next word fails to parse."""
    first = _WORD.search(text)
    if first and first.group().upper() == "SELECT":
        return QuerySyntaxError("this looks like SQL", text, Span(*first.span()), _OTHER_LANGUAGES["SELECT"])
    words = [(m.group().upper(), Span(m.start(), m.end())) for m in _WORD.finditer(text, 0, span.end)][-2:]
    for word, at in reversed(words):
        is_next_to_error = at == span or not text[at.end : span.start].strip()
        if not is_next_to_error or word in RESERVED_WORDS:
            continue
        named = text[at.start : at.end]
        if word in _OTHER_LANGUAGES:
            return QuerySyntaxError(f"`{named}` is not a clause", text, at, _OTHER_LANGUAGES[word])
        close = get_close_matches(word, CLAUSE_WORDS, n=1, cutoff=0.75)
        if close and (expected & CLAUSE_WORDS or at != span):
            return QuerySyntaxError(f"`{named}` is not a clause", text, at, f"did you mean {close[0]}?")
    return None


def _open_bracket(text: str) -> tuple[str, str] | None:
    """Return the innermost bracket that the text leaves open: the one that would close it, and where it is."""
    opened: list[tuple[str, int]] = []
    for match in _LOOSE_BRACKET.finditer(text):
        bracket = match.group(1)
        if bracket in _BRACKETS:
            opened.append((bracket, match.start(1)))
        elif bracket and opened:
            opened.pop()
    if not opened:
        return None
    bracket, start = opened[-1]
    return _BRACKETS[bracket], f"the `{bracket}` at {place(text, Span(start, start))}"


def _unclosed(text: str) -> str:
    innermost = _open_bracket(text)
    return f"{innermost[1]} is not closed." if innermost else ""


def _closes_nothing(token: Token, before: str) -> str:
    if token.type not in CLOSE:
        return ""
    innermost = _open_bracket(before)
    if innermost is None:
        return "this bracket closes nothing."
    closing, opened = innermost
    return "" if closing == token else f"{opened} needs a `{closing}`."


def _clause_in_bracket(text: str, span: Span) -> str:
    """Return a hint if a clause keyword, which inside brackets is a name, is next to the error."""
    before = _LAST_WORD.search(text, 0, span.start)
    words = {text[span.start : span.end].upper(), before.group(1).upper() if before else ""}
    return _unclosed(text[: span.start]) if words & CLAUSE_WORDS else ""


def _keyword_as_name(token: Token, expected: frozenset[str]) -> str:
    if token.type == "PATTERN":
        return "a definition before PATTERN is written SEQ name = pattern."
    if token.type in RESERVED_WORDS and "NAME" in expected:
        return f"{token.upper()} is a keyword; as a name it goes in backticks: `{token}`."
    return ""


def _after_keyword(before: str) -> str:
    match = _LAST_WORD.search(before)
    word = match.group(1).upper() if match and before[: match.start(1)][-1:] not in (".", "`") else ""
    return f"{word} is followed by {_AFTER[word]}." if word in _AFTER else ""


def _by_token(token: Token, before: str, expected: frozenset[str]) -> str:
    match token.type:
        case "BANG" if "NOT" in expected:
            return "in a predicate, negation is written NOT."
        case "COMMA" if "MERGE" in expected:
            return "objectives are joined by AND."
        case "COMMA" | "DOT" if expected == {"RSQB"}:
            return "`[attr]` names one column that all variables share; for two write [x] AND [y]."
        case "EQ" if "BAR" in expected:
            return "a definition begins with SEQ: SEQ name = pattern."
        case "NUMBER" if "BANG" in expected:
            return "a class name that starts with a digit goes in backticks."
        case "STRING" if "BANG" in expected:
            return f"a class name goes in backticks: `{token[1:-1]}`."
        case _ if expected == {"LPAR"} and before.rstrip().endswith("="):
            return "the predicate of a class goes in parentheses: WITH A = (x > 3)."
        case "LBRACE":
            return "exactly n events are `A[n]`."
        case "NAME" if "COMMA" in expected and "RPAR" in expected:
            return "an event is `class variable`; the next one follows a comma or `;`."
        case _:
            return ""


def _expected(expected: frozenset[str]) -> str:
    """List the tokens expected here: at most six single tokens, then groups of tokens."""
    rest, phrases = set(expected) - _NEVER_LISTED, []
    if "FALSE" in rest:
        phrases.append("a predicate" if "NOT" in rest else "a value")
        rest -= _VALUE | {"NOT"}
    for telling, others, phrase in _TOGETHER:
        if telling in rest and (telling != "EQ" or "NE" in rest):
            phrases.append(phrase)
            rest -= others | {telling}
    singles = sorted(_SPELLING.get(token, token) for token in rest if token != "$END")
    end = [_SPELLING["$END"]] if "$END" in rest else []
    phrases = [*singles[:6], *phrases, *end]
    if not phrases:
        return ""
    return "expected " + (", ".join(phrases[:-1]) + " or " if len(phrases) > 1 else "") + phrases[-1] + "."
