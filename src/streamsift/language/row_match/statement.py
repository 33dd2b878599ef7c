"""Find MATCH_RECOGNIZE clauses in an SQL statement: the relation, the clause and its alias.

Only brackets, names and keywords are read; strings, comments and quoted names are skipped. The rest of the statement is
Spark's.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from streamsift.errors import QuerySyntaxError, Span

_TOKEN = re.compile(
    r"""(?P<hint>/\*\+.*?\*/)
    |(?P<skip>\s+|--[^\n]*|/\*.*?\*/)
    |(?P<string>'(?:[^'\\]|\\.|'')*'|"(?:[^"\\]|\\.|"")*")
    |(?P<quoted>`(?:[^`]|``)*`)
    |(?P<parameter>\{\w+\})
    |(?P<word>[^\W\d]\w*)
    |(?P<number>\d[\w.]*)
    |(?P<sign>.)""",
    re.DOTALL | re.VERBOSE,
)
# Words that cannot be an alias, because they begin what follows a relation.
_AFTER_RELATION = frozenset(
    "WHERE JOIN INNER LEFT RIGHT FULL CROSS SEMI ANTI NATURAL ON USING GROUP ORDER HAVING LIMIT OFFSET UNION EXCEPT "
    "MINUS INTERSECT WINDOW LATERAL PIVOT UNPIVOT SORT CLUSTER DISTRIBUTE QUALIFY TABLESAMPLE SELECT SET VALUES "
    "OUTER".split()
)
_BEFORE_RELATION = frozenset("FROM JOIN LATERAL TABLE".split())


@dataclass(frozen=True, slots=True)
class SqlToken:
    kind: str  # string, quoted, parameter, word, number or sign
    text: str
    start: int
    end: int

    @property
    def upper(self) -> str:
        return self.text.upper() if self.kind == "word" else self.text

    @property
    def is_name(self) -> bool:
        return self.kind in ("word", "quoted", "parameter")


@dataclass(frozen=True, slots=True)
class Clause:
    """A relation with its MATCH_RECOGNIZE clause, as ranges of tokens."""

    start: int  # of the relation
    relation: tuple[int, int]  # without its alias
    clause: tuple[int, int]  # MATCH_RECOGNIZE ( … )
    alias: str | None
    columns: tuple[str, ...]
    end: int  # after the clause and its alias


def tokens_of(statement: str) -> list[SqlToken]:
    return [
        SqlToken(str(match.lastgroup), match.group(), match.start(), match.end())
        for match in _TOKEN.finditer(statement)
        if match.lastgroup != "skip"
    ]


def text_of(tokens: Sequence[SqlToken]) -> str:
    """Return tokens as text; tokens that were adjacent stay so."""
    text = ""
    for before, token in zip([None, *tokens], tokens, strict=False):
        text += (" " if before is not None and before.end != token.start else "") + token.text
    return text


def first_clause(tokens: list[SqlToken], statement: str) -> Clause | None:
    """Return the first clause of a statement; those inside its relation come before it."""
    for index, token in enumerate(tokens[:-1]):
        if token.upper == "MATCH_RECOGNIZE" and tokens[index + 1].text == "(" and index > 0:
            relation = _relation(tokens, index)
            if relation is not None:
                end = _closing(tokens, index + 1, statement)
                alias, columns, after = _alias(tokens, end, statement)
                return Clause(relation[0], relation, (index, end), alias, columns, after)
    return None


def _closing(tokens: list[SqlToken], opened: int, statement: str) -> int:
    """Return the index after the bracket that closes the one at an index."""
    depth = 0
    for index in range(opened, len(tokens)):
        depth += (tokens[index].text == "(") - (tokens[index].text == ")")
        if depth == 0:
            return index + 1
    at = Span(tokens[opened].start, tokens[opened].end)
    raise QuerySyntaxError("the bracket of MATCH_RECOGNIZE is not closed", statement, at, "add `)`.")


def _opening(tokens: list[SqlToken], closed: int) -> int | None:
    depth = 0
    for index in range(closed, -1, -1):
        depth += (tokens[index].text == ")") - (tokens[index].text == "(")
        if depth == 0:
            return index
    return None


def _relation(tokens: list[SqlToken], before: int) -> tuple[int, int] | None:
    """Return the relation that ends before an index: without an alias."""
    last = before - 1
    bounds = _unaliased(tokens, last)
    if bounds is None:
        return None
    start = bounds[0]
    previous = tokens[start - 1] if start else None
    is_name = tokens[last].is_name and start == last
    if is_name and previous is not None:  # perhaps an alias
        inner = None
        if previous.upper == "AS" and start >= 2:
            inner = _unaliased(tokens, start - 2)
        elif previous.text == ")" or (previous.is_name and previous.upper not in _BEFORE_RELATION | _AFTER_RELATION):
            inner = _unaliased(tokens, start - 1)
        if inner is not None:
            return inner
    return bounds


def _unaliased(tokens: list[SqlToken], last: int) -> tuple[int, int] | None:
    """Return a table name, a bracketed query or the call of a table function that ends at an index."""
    token = tokens[last]
    if token.text == ")":
        opened = _opening(tokens, last)
        if opened is None:
            return None
        is_call = opened > 0 and tokens[opened - 1].is_name and tokens[opened - 1].upper not in _BEFORE_RELATION
        return (opened - is_call, last + 1)
    if not token.is_name:
        return None
    start = last
    while start >= 2 and tokens[start - 1].text == "." and tokens[start - 2].is_name:
        start -= 2
    return (start, last + 1)


def _alias(tokens: list[SqlToken], index: int, statement: str) -> tuple[str | None, tuple[str, ...], int]:
    """Return the alias after a clause, its columns, and the index after them."""
    at = index
    if at < len(tokens) and tokens[at].upper == "AS":
        at += 1
    if at >= len(tokens):
        return None, (), index
    token = tokens[at]
    is_name = token.kind == "quoted" or (token.kind == "string" and token.text[0] == '"')
    if not is_name and (token.kind != "word" or (at == index and token.upper in _AFTER_RELATION)):
        return None, (), index
    name = token.text[1:-1] if is_name else token.text
    at += 1
    if at >= len(tokens) or tokens[at].text != "(":
        return name, (), at
    end = _closing(tokens, at, statement)
    columns = [
        t.text[1:-1] if t.kind in ("quoted", "string") else t.text for t in tokens[at + 1 : end - 1] if t.text != ","
    ]
    return name, tuple(columns), end


@dataclass(frozen=True, slots=True)
class CommonTable:
    """One `name [(columns)] AS (query)` of WITH, as a range of tokens, and the range in which its name is known."""

    tokens: tuple[int, int]
    visible: tuple[int, int]


def common_tables(tokens: list[SqlToken], statement: str) -> Iterator[list[CommonTable]]:
    """Yield the tables of each WITH, outer ones first."""
    for index, token in enumerate(tokens):
        is_start = index == 0 or tokens[index - 1].text in "(;" or tokens[index - 1].upper in ("AS", "EXPLAIN")
        if token.upper != "WITH" or not is_start:
            continue
        end = _end_of_group(tokens, index)
        bounds: list[CommonTable] = []
        at = index + 1 + (tokens[index + 1].upper == "RECURSIVE" if index + 1 < len(tokens) else 0)
        while at < len(tokens) and tokens[at].is_name:
            start = at
            at += 1
            if at < len(tokens) and tokens[at].text == "(":
                at = _closing(tokens, at, statement)
            if at < len(tokens) and tokens[at].upper == "AS":
                at += 1
            if at >= len(tokens) or tokens[at].text != "(":
                break
            at = _closing(tokens, at, statement)
            bounds.append(CommonTable((start, at), (at, end)))
            if at >= len(tokens) or tokens[at].text != ",":
                break
            at += 1
        if bounds:
            yield bounds


def _end_of_group(tokens: list[SqlToken], start: int) -> int:
    depth = 0
    for index in range(start, len(tokens)):
        depth += (tokens[index].text == "(") - (tokens[index].text == ")")
        if depth < 0:
            return index
    return len(tokens)
