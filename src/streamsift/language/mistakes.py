"""Turn Lark's error into a QuerySyntaxError that says what is wrong, where, and what to do."""

from __future__ import annotations

import re
from difflib import get_close_matches

from lark import Token
from lark.exceptions import UnexpectedCharacters, UnexpectedInput, UnexpectedToken

from streamsift.errors import QuerySyntaxError, Span, place
from streamsift.language.keywords import CLAUSE_WORDS, RESERVED_WORDS
from streamsift.language.tokens import CLOSE

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
# Tokens that users see as one thing. If the first token of a row is expected, its phrase replaces the row's tokens.
_TOGETHER: tuple[tuple[str, frozenset[str], str], ...] = (
    ("BANG", frozenset("NOT LPAR LSQB LBRACE NAME PATTERN NEXT LATEST".split()), "an event class, `!` or a bracket"),
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
_LENGTH = ("a length", "10 s, 500 or 20 EVENTS")
_AFTER = {  # keyword: what it must be followed by, and an example
    "AGG": ("an aggregate", "COUNT or SUM(a.price)"),
    "AS": ("a name", ""),
    "BY": ("a column", ""),
    "EMIT": ("FINAL, EACH or CHANGES", ""),
    "GROUP": ("BY", ""),
    "IN": ("a list of values in parentheses", ""),
    "IS": ("NULL or NOT NULL", ""),
    "LIKE": ("a string in quotes", ""),
    "MERGE": ("SUM, AVG, MIN, MAX or PRODUCT", ""),
    "PARTITION": ("BY", ""),
    "PATTERN": ("a pattern", "A; B or SEQ(A a, B b)"),
    "PREF": ("MIN[…] or MAX[…]", ""),
    "RETURN": ("output columns or the number of results", "a, a.price or 10"),
    "SEQ": ("a pattern", "A; B or (A a, B b)"),
    "TIMESTAMP": ("a string in quotes", ""),
    "TOP": ("a number", ""),
    "UPDATE": _LENGTH,
    "WHERE": ("a predicate", "a.price > 3"),
    "WITH": ("class = (predicate)", ""),
    "WITHIN": _LENGTH,
}
_ITEM = {  # clause: what its commas separate
    "AGG": "an aggregate",
    "GROUP": "a column",
    "PARTITION": "a column",
    "RETURN": "an output column",
    "WITH": "a class",
}
_OTHER_SPELLINGS = {
    "==": "write `=` for equality.",
    "&&": "write AND, or a single `&` between patterns.",
    "->": "write a sequence as `A; B` or SEQ(A, B).",
    "=>": "write `>=` for greater or equal.",
    "=<": "write `<=` for less or equal.",
    "//": "start a comment with `--`.",
    "/*": "start a comment with `--`.",
    "! =": "write `!=` without a space.",
}
_UNCLOSED = {
    "'": ("the string is not closed", "add a closing `'`."),
    '"': ("the string is not closed", 'add a closing `"`.'),
    "`": ("the quoted name is not closed", "add a closing backtick."),
}
_CHARACTERS = {"#": "start a comment with `--`.", "?": "replace `?` with a value."}
_OTHER_LANGUAGES = {
    "SELECT": "start with a pattern, such as PATTERN SEQ(A a, B b), and list output columns in RETURN.",
    "LIMIT": "write PREF MAX[…] RETURN k for the k best matches.",
    "ORDER": "write PREF MAX[…] RETURN k to rank matches.",
    "HAVING": "write all predicates, including those on Kleene groups, in WHERE.",
    "FILTER": "write predicates in WHERE.",
    "WINDOW": "write a window as WITHIN 10 s or WITHIN 20 EVENTS.",
    "EVERY": "remove EVERY: a query returns every match.",
}
_EXAMPLE = "start with a pattern, such as PATTERN SEQ(A a, B b)."
_WORD = re.compile(r"[^\W\d]\w*")
_LAST_WORD = re.compile(r"([^\W\d]\w*)\s*\Z")
_BRACKETS = {"(": ")", "[": "]", "{": "}"}
_QUOTED = r"'(?:[^']|'')*'|\"(?:[^\"]|\"\")*\"|`[^`\n]*`"
_COMMENT = re.compile(rf"--[^\n]*|({_QUOTED})")
_BRACKET_OR_WORD = re.compile(rf"{_QUOTED}|\.\s*\w+|(?P<bracket>[()\[\]{{}}])|(?P<word>[^\W\d]\w*)")
_COUNT = re.compile(r"[\[{]\s*(\d+)\s*[\]}]")
_RANGE = re.compile(r"[\[{]\s*\d*\s*(?:\.\.+|[,:-])\s*\d*\s*[\]}]")
_CLASS_AND_VARIABLE = re.compile(r"\(\s*([^\W\d]\w*)\s+([^\W\d]\w*)\s*\)\s*\Z")


def syntax_error(error: UnexpectedInput, text: str, start: str = "script") -> QuerySyntaxError:
    """Return the error of a text that was parsed as a `script` or as a `predicate`."""
    code, is_script = _without_comments(text), start == "script"
    if not code.strip():
        if not is_script:
            return QuerySyntaxError("the expression is empty", hint="write a predicate, such as a.price > 3.")
        only = ": it has only comments" if text.strip() else ""
        return QuerySyntaxError(f"the query is empty{only}", hint=_EXAMPLE)
    match error:
        case UnexpectedCharacters():
            return _wrong_character(error.pos_in_stream or 0, text, code, is_script)
        case UnexpectedToken():
            expected = frozenset(error.accepts or error.expected)
            if error.token.type == "$END":
                return _early_end(text, code, expected)
            return _wrong_token(error.token, text, code, expected, is_script)
        case _:
            raise error


def _without_comments(text: str) -> str:
    """Replace comments with blanks, so that offsets stay the same."""
    return _COMMENT.sub(lambda match: match.group(1) or " " * len(match.group()), text)


def _wrong_character(start: int, text: str, code: str, is_script: bool) -> QuerySyntaxError:
    character, span = text[start], Span(start, start + 1)
    if is_script and (repeated := _range_of_counts(text, code, span)) is not None:
        return repeated
    if character in _UNCLOSED:
        message, hint = _UNCLOSED[character]
        return QuerySyntaxError(message, text, span, hint)
    if is_script and character == "?" and _clause(code[:start]) == "PATTERN":
        hint = "write `*` for zero or more events, or use OR to list the pattern with and without the event."
        return QuerySyntaxError("the quantifier `?` is not supported", text, span, hint)
    hint = _CHARACTERS.get(character, "put names with special characters in backticks, and strings in quotes.")
    return QuerySyntaxError(f"unexpected character `{character}`", text, span, hint)


def _early_end(text: str, code: str, expected: frozenset[str]) -> QuerySyntaxError:
    end = len(code.rstrip())
    if (comma := _trailing_comma(text, code[:end])) is not None:
        return comma
    hint = _after_keyword(code) or _unclosed(code[:end]) or _expected(expected)
    if code[:end].endswith(";"):
        hint = "remove the last `;`, or add another event."
    if "SEQ_DEFINITION" in expected and code.split(maxsplit=1)[0].upper() == "SEQ":
        hint = "add a PATTERN statement that uses the definitions."
    return QuerySyntaxError("the query ends too early", text, Span(end, end + 1), hint)


def _wrong_token(token: Token, text: str, code: str, expected: frozenset[str], is_script: bool) -> QuerySyntaxError:
    start = token.start_pos or 0
    span, before = Span(start, max(token.end_pos or 0, start + 1)), code[:start]
    if is_script and (error := _wrong_script(token, text, code, span, expected)) is not None:
        return error
    hints = (
        _other_spelling(code, span),
        _closes_nothing(token, before),
        _clause_in_bracket(code, span),
        _keyword_as_name(token, expected),
        _by_token(token, before, expected) if is_script or token.type != "NAME" else "",
        _after_keyword(before),
        _expected(expected),
    )
    hint = next((h for h in hints if h), "")
    return QuerySyntaxError(f"unexpected `{text[span.start : span.end]}`", text, span, hint)


def _wrong_script(token: Token, text: str, code: str, span: Span, expected: frozenset[str]) -> QuerySyntaxError | None:
    """Return an error for a mistake that has a message of its own."""
    before = code[: span.start]
    return (
        _range_of_counts(text, code, span)
        or _repeated_pattern(text, code, span)
        or (_misspelled_clause(text, code, span, expected) if not _open_bracket(before) else None)
        or (_missing_pattern(token, text, code, expected) if token.type in CLAUSE_WORDS else None)
        or (_trailing_comma(text, before) if token.type in CLAUSE_WORDS | {"COMMA"} else None)
    )


def _range_of_counts(text: str, code: str, span: Span) -> QuerySyntaxError | None:
    """Return an error for `A[1..2]` and `A{1,2}`."""
    for match in _RANGE.finditer(code):
        if match.start() <= span.start < match.end() and _clause(code[: match.start()]) == "PATTERN":
            hint = "write `[n]` for exactly n events, `+` for one or more, or OR for several counts."
            return QuerySyntaxError("a range of counts is not supported", text, Span(*match.span()), hint)
    return None


def _repeated_pattern(text: str, code: str, span: Span) -> QuerySyntaxError | None:
    """Return an error for `(A; B)+` and `SEQ(A, B)[2]`."""
    before, sign = code[: span.start], code[span.start]
    if sign not in "+*[{" or before.rstrip()[-1:] not in ")]}" or _clause(before) != "PATTERN":
        return None
    count = _COUNT.match(code, span.start)
    if sign in "[{" and count is None:
        return None
    span = Span(*count.span()) if count else span
    quantifier, hint = code[span.start : span.end], "repeat one class, such as `A+`; a sub-pattern cannot be repeated."
    if event := _CLASS_AND_VARIABLE.search(before):
        name, variable = event.groups()
        hint = f"write `{name}{quantifier} {variable}` to repeat the class `{name}` with the variable `{variable}`."
    return QuerySyntaxError(f"`{quantifier}` cannot repeat a pattern in brackets", text, span, hint)


def _missing_pattern(token: Token, text: str, code: str, expected: frozenset[str]) -> QuerySyntaxError | None:
    """Return an error for a clause, not a name, where a pattern must begin."""
    start, end = token.start_pos or 0, token.end_pos or 0
    if "BANG" not in expected or token.type == "PATTERN" or code[end:].lstrip()[:1] in (*";,)]}|&+*", ""):
        return None
    before, span = code[:start].rstrip(), Span(start, end)
    if before.endswith(";"):
        return QuerySyntaxError(f"unexpected `{token}` after `;`", text, span, "remove the `;`, or add another event.")
    if before and before.split()[-1].upper() not in ("PATTERN", "SEQ"):
        return None
    return QuerySyntaxError(f"there is no pattern before {token.upper()}", text, span, _EXAMPLE)


def _trailing_comma(text: str, before: str) -> QuerySyntaxError | None:
    """Return an error for `RETURN a,` without another item."""
    end, clause = len(before.rstrip()), _clause(before)
    if not before[:end].endswith(",") or clause not in _ITEM or _open_bracket(before) is not None:
        return None
    name = f"{clause} BY" if clause in ("GROUP", "PARTITION") else clause
    message = f"{name} has a comma without {_ITEM[clause]} after it"
    return QuerySyntaxError(message, text, Span(end - 1, end), f"remove the comma, or add {_ITEM[clause]}.")


def _clause(code: str) -> str:
    """Return the keyword of the clause that the end of the text belongs to; PATTERN for a pattern."""
    depth, clause = 0, "PATTERN"
    for match in _BRACKET_OR_WORD.finditer(code):
        bracket, word = match.group("bracket"), (match.group("word") or "").upper()
        depth += (bracket in _BRACKETS) - (bracket in _BRACKETS.values())
        if depth <= 0 and (word in CLAUSE_WORDS or word == "SEQ"):
            clause = "PATTERN" if word == "SEQ" else word
    return clause


def _other_spelling(code: str, span: Span) -> str:
    around = code[max(span.start - 1, 0) : span.end + 2]
    return next((hint for spelling, hint in _OTHER_SPELLINGS.items() if spelling in around), "")


def _misspelled_clause(text: str, code: str, span: Span, expected: frozenset[str]) -> QuerySyntaxError | None:
    """Return an error for `A; B WHEER …`: the word was taken for B's variable, and the next word fails to parse."""
    first = _WORD.search(code)
    if first and first.group().upper() == "SELECT":
        hint = _OTHER_LANGUAGES["SELECT"]
        return QuerySyntaxError("a query cannot start with SELECT", text, Span(*first.span()), hint)
    words = [(m.group().upper(), Span(m.start(), m.end())) for m in _WORD.finditer(code, 0, span.end)][-2:]
    for word, at in reversed(words):
        is_next_to_error = at == span or not code[at.end : span.start].strip()
        if not is_next_to_error or word in RESERVED_WORDS:
            continue
        written = text[at.start : at.end]
        if word in _OTHER_LANGUAGES:
            return QuerySyntaxError(f"`{written}` is not a clause", text, at, _OTHER_LANGUAGES[word])
        close = get_close_matches(word, CLAUSE_WORDS, n=1, cutoff=0.75)
        if close and (expected & CLAUSE_WORDS or at != span):
            return QuerySyntaxError(f"`{written}` is not a clause", text, at, f"did you mean {close[0]}?")
    return None


def _open_bracket(code: str) -> tuple[str, str] | None:
    """Return the bracket that closes the innermost open bracket, and where that one is."""
    opened: list[tuple[str, int]] = []
    for match in _BRACKET_OR_WORD.finditer(code):
        bracket = match.group("bracket")
        if bracket in _BRACKETS:
            opened.append((bracket, match.start()))
        elif bracket and opened:
            opened.pop()
    if not opened:
        return None
    bracket, start = opened[-1]
    return _BRACKETS[bracket], f"the `{bracket}` at {place(code, Span(start, start))}"


def _unclosed(code: str) -> str:
    innermost = _open_bracket(code)
    return f"close {innermost[1]}." if innermost else ""


def _closes_nothing(token: Token, before: str) -> str:
    if token.type not in CLOSE:
        return ""
    innermost = _open_bracket(before)
    if innermost is None:
        return "remove it: there is no bracket to close."
    closing, opened = innermost
    return "" if closing == token else f"close {opened} with `{closing}`."


def _clause_in_bracket(code: str, span: Span) -> str:
    """Return a hint if a clause keyword, which inside brackets is a name, is next to the error."""
    before = _LAST_WORD.search(code, 0, span.start)
    words = {code[span.start : span.end].upper(), before.group(1).upper() if before else ""}
    return _unclosed(code[: span.start]) if words & CLAUSE_WORDS else ""


def _keyword_as_name(token: Token, expected: frozenset[str]) -> str:
    if token.type == "PATTERN":
        return "write a definition before PATTERN as SEQ name = pattern."
    if token.type in RESERVED_WORDS and "NAME" in expected:
        return f"to use the keyword {token.upper()} as a name, put it in backticks: `{token}`."
    return ""


def _after_keyword(before: str) -> str:
    match = _LAST_WORD.search(before)
    word = match.group(1).upper() if match and before[: match.start(1)][-1:] not in (".", "`") else ""
    if word not in _AFTER:
        return ""
    what, example = _AFTER[word]
    return f"expected {what} after {word}{f', such as {example}' if example else ''}."


def _by_token(token: Token, before: str, expected: frozenset[str]) -> str:
    match token.type:
        case "BANG" if "NOT" in expected:
            return "write NOT to negate a predicate."
        case "COMMA" if "MERGE" in expected:
            return "join objectives with AND."
        case "COMMA" if expected == {"RSQB"}:
            return "name one column in brackets, and join two with AND: [x] AND [y]."
        case "DOT" if expected == {"RSQB"}:
            return "name a column without a variable: `[attr]` applies to all variables."
        case "EQ" if "BAR" in expected:
            return "start a definition with SEQ: SEQ name = pattern."
        case "NUMBER" if "BANG" in expected:
            return "put a class name that starts with a digit in backticks."
        case "STRING" if "BANG" in expected:
            return f"put a class name in backticks, not in quotes: `{token[1:-1]}`."
        case _ if expected == {"LPAR"} and before.rstrip().endswith("="):
            return "put the predicate of a class in parentheses: WITH A = (x > 3)."
        case "LBRACE":
            return "write `A[n]` for exactly n events."
        case "NAME" if _clause(before) == "PATTERN" and _LAST_WORD.search(before):
            clause = "" if _open_bracket(before) else ", or start a clause, such as WHERE"
            return f"put {'`;`' if clause else 'a comma or `;`'} before the next event{clause}."
        case _:
            return ""


def _expected(expected: frozenset[str]) -> str:
    """List the expected tokens: up to six single tokens, then groups of tokens."""
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
