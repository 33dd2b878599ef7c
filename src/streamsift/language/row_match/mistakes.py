"""Turn Lark's error in MATCH_RECOGNIZE into a QuerySyntaxError that says what is wrong, where, and what to do."""

from __future__ import annotations

import re
from difflib import get_close_matches

from lark import Token
from lark.exceptions import UnexpectedCharacters, UnexpectedInput, UnexpectedToken

from streamsift.errors import QuerySyntaxError, Span, place
from streamsift.language.row_match.tokens import CLAUSE_WORDS

_SIGNS = {"EQ": "=", "BAR": "|", "COMMA": ",", "LPAR": "(", "RPAR": ")", "RBRACE": "}", "RSQB": "]",
          "EXCLUDE_CLOSE": "-}"}  # fmt: skip
_SPELLING = {name: f"`{sign}`" for name, sign in _SIGNS.items()} | {
    "NAME": "a name",
    "NUMBER": "a number",
    "TYPE": "a type",
    "$END": "the end of the query",
}
_TOGETHER: tuple[tuple[str, frozenset[str], str], ...] = (  # a telling token, the others, and their phrase
    ("PERMUTE", frozenset("NAME CARET DOLLAR EXCLUDE_OPEN LPAR".split()), "a variable or a bracket"),
    ("QUESTION", frozenset("STAR PLUS LBRACE".split()), "a quantifier"),
    (
        "CASE",
        frozenset(
            "LPAR MINUS PLUS TILDE NAME NUMBER SUFFIXED STRING TRUE FALSE NULL TYPED INTERVAL FUNCTION RUNNING FINAL "
            "CAST NOT BANG LAMBDA DISTINCT STAR TRIMMED".split()
        ),
        "an expression",
    ),
    (
        "NULLSAFE",
        frozenset("EQ NE LT LE GT GE IN BETWEEN IS LIKE NOT CARET BAR AMPERSAND".split()),
        "a comparison",
    ),
    (
        "SLASH",
        frozenset("PERCENT STAR PLUS MINUS CONCAT DIV DOT DCOLON LSQB BAR CARET AMPERSAND UNIT".split()),
        "an arithmetic operator",
    ),
    (
        "DEFINE",
        frozenset("PARTITION ORDER MEASURES ONE ALL AFTER PATTERN WITHIN SUBSET".split()),
        "a clause (MEASURES, PATTERN, DEFINE, …)",
    ),
)
_AFTER = {
    "BY": "expected columns after BY.",
    "MEASURES": "expected a measure after MEASURES, such as A.price AS price.",
    "PATTERN": "put the pattern in parentheses: PATTERN (A B+).",
    "DEFINE": "expected a condition after DEFINE, such as A AS A.price > 10.",
    "SUBSET": "expected a union of variables after SUBSET, such as U = (A, B).",
    "SKIP": "write AFTER MATCH SKIP PAST LAST ROW, TO NEXT ROW, TO FIRST A or TO LAST A.",
    "WITHIN": "expected a length after WITHIN, such as INTERVAL '10' MINUTE.",
    "AS": "expected a name or a condition after AS.",
    "ONE": "write ONE ROW PER MATCH.",
    "ALL": "write ALL ROWS PER MATCH.",
    "AFTER": "write AFTER MATCH SKIP PAST LAST ROW.",
}
_UNCLOSED = {
    "'": ("the string is not closed", "add a closing `'`."),
    '"': ("the quoted name is not closed", 'add a closing `"`.'),
    "`": ("the quoted name is not closed", "add a closing backtick."),
}
_UNSUPPORTED = {
    "SELECT": ("a subquery is not allowed in MATCH_RECOGNIZE", "join the table before the clause."),
    "OVER": ("a window function is not allowed in MATCH_RECOGNIZE", "use PREV, NEXT, FIRST, LAST or an aggregate."),
    "FILTER": ("FILTER is not allowed in MATCH_RECOGNIZE", "aggregate CASE WHEN … THEN … END."),
    "SEEK": ("SEEK is not supported", "remove it: a match may start at any row."),
    "INITIAL": ("INITIAL is not supported", "anchor the pattern with `^`."),
}
_FIRST_WORDS = {words.split()[0]: words for words in CLAUSE_WORDS}
_LAST_WORD = re.compile(r"([^\W\d]\w*)\s*\Z")
_WORD = re.compile(r"[^\W\d]\w*")
_SKIPPED = re.compile(r"'(?:[^'\\]|\\.|'')*'|\"(?:[^\"\\]|\\.|\"\")*\"|`[^`]*`|(--[^\n]*|/\*.*?\*/)", re.DOTALL)
_BRACKETS = {"(": ")", "[": "]", "{": "}"}


def syntax_error(error: UnexpectedInput, text: str) -> QuerySyntaxError:
    code = _SKIPPED.sub(lambda match: " " * len(match.group()) if match.group(1) else match.group(), text)
    if not code.strip():
        return QuerySyntaxError("the clause is empty", hint="write PATTERN (A B+) DEFINE A AS …, for example.")
    match error:
        case UnexpectedCharacters():
            start = error.pos_in_stream or 0
            span = Span(start, start + 1)
            if text.startswith("/*", start):
                return QuerySyntaxError("the comment is not closed", text, Span(start, start + 2), "add `*/`.")
            message, hint = _UNCLOSED.get(text[start], (f"unexpected character `{text[start]}`", ""))
            return QuerySyntaxError(message, text, span, hint)
        case UnexpectedToken():
            expected = frozenset(error.accepts or error.expected)
            if error.token.type == "$END":
                end = len(code.rstrip())
                hint = _after(code) or _unclosed(code) or _expected(expected)
                return QuerySyntaxError("the clause ends too early", text, Span(end, end + 1), hint)
            return _wrong_token(error.token, text, code, expected)
        case _:
            raise error


def _wrong_token(token: Token, text: str, code: str, expected: frozenset[str]) -> QuerySyntaxError:
    start = token.start_pos or 0
    span = Span(start, max(token.end_pos or 0, start + 1))
    written, before = text[span.start : span.end], code[:start]
    word = written.upper()
    if word in _UNSUPPORTED:
        message, hint = _UNSUPPORTED[word]
        return QuerySyntaxError(message, text, span, hint)
    if (misspelled := _misspelled(text, before, span)) is not None:
        return misspelled
    hint = _after(before)
    if token.type == "QUESTION" and "QUESTION" not in expected:
        hint = "parameters are not supported inside MATCH_RECOGNIZE; `?` is a quantifier of PATTERN."
    elif token.type == "STRING" and "NAME" in expected:
        hint = "put a name in double quotes or backticks."
    elif token.type in ("RPAR", "RBRACE", "RSQB") and not _open(before):
        hint = "remove it: there is no bracket to close."
    elif token.type in _FIRST_WORDS and _open(before):
        hint = _unclosed(before) or hint
    return QuerySyntaxError(f"unexpected `{written}`", text, span, hint or _expected(expected))


def _misspelled(text: str, before: str, span: Span) -> QuerySyntaxError | None:
    """Return an error for a word that is nearly the first word of a clause."""
    words = [(m.group().upper(), Span(m.start(), m.end())) for m in _WORD.finditer(text, 0, span.end)][-2:]
    for word, at in reversed(words):
        is_next_to_error = at == span or not text[at.end : span.start].strip()
        if not is_next_to_error or word in _FIRST_WORDS or _depth(before) != _depth(text[: at.start]):
            continue
        close = get_close_matches(word, _FIRST_WORDS, n=1, cutoff=0.75)
        if close:
            written = text[at.start : at.end]
            return QuerySyntaxError(f"`{written}` is not a clause", text, at, f"did you mean {_FIRST_WORDS[close[0]]}?")
    return None


def _after(before: str) -> str:
    match = _LAST_WORD.search(before)
    return _AFTER.get(match.group(1).upper(), "") if match else ""


def _depth(code: str) -> int:
    return len(_open(code))


def _open(code: str) -> list[tuple[str, int]]:
    opened: list[tuple[str, int]] = []
    blank = _SKIPPED.sub(lambda match: " " * len(match.group()), code)
    for index, character in enumerate(blank):
        if character in _BRACKETS:
            opened.append((character, index))
        elif character in _BRACKETS.values() and opened:
            opened.pop()
    return opened


def _unclosed(code: str) -> str:
    opened = _open(code)
    if not opened:
        return ""
    bracket, start = opened[-1]
    return f"close the `{bracket}` at {place(code, Span(start, start))}."


def _expected(expected: frozenset[str]) -> str:
    rest, phrases = set(expected), []
    for telling, others, phrase in _TOGETHER:
        if telling in rest:
            phrases.append(phrase)
            rest -= others | {telling}
    singles = sorted(_SPELLING.get(token, token) for token in rest if token != "$END")
    end = [_SPELLING["$END"]] if "$END" in rest else []
    phrases = [*singles[:6], *phrases, *end]
    if not phrases:
        return ""
    return "expected " + (", ".join(phrases[:-1]) + " or " if len(phrases) > 1 else "") + phrases[-1] + "."
