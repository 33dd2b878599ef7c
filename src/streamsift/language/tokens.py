"""Resolve words and brackets by their context: which words are keywords, which brackets are calls.

This pass reads the neighboring tokens and enclosing brackets of a word, which an LALR(1) parser cannot, and gives the
parser unambiguous tokens:

- clause keywords are names inside brackets, so that `SEQ(Return r, Update u)` needs no quotes;
- after a dot, every word is a column name;
- `AND (` is a call if an operand may start there, and an infix operator after an operand;
- NEXT and LATEST are keywords before a class, and names anywhere else;
- an argument of SEQ, AND or OR is a predicate if it contains a comparison or a dotted name.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from lark import Token

from streamsift.language.keywords import CLAUSE_WORDS, EVENT_WORDS, EVERYWHERE_WORDS, OBJECTIVES

OPEN = {"LPAR": "RPAR", "LSQB": "RSQB", "LBRACE": "RBRACE"}
CLOSE = frozenset(OPEN.values())
# An AND after one of these tokens is infix, because they end an operand; `+` and `*` do so as quantifiers.
ENDS_OPERAND = frozenset({"NAME", "NUMBER", "UNIT", "STRING", "NULL", "TRUE", "FALSE", "PLUS", "STAR"}) | CLOSE
STARTS_COMPONENT = frozenset(
    "PATTERN SEQ_STATEMENT EQ SEMICOLON COMMA LPAR LSQB LBRACE BAR AMPERSAND BANG AND OR NOT".split()
)
MAKES_PREDICATE = frozenset({"EQ", "NE", "LT", "LE", "GT", "GE", "IN", "BETWEEN", "IS", "LIKE", "DOT"})


@dataclass(slots=True)
class _Bracket:
    is_call: bool
    argument_start: int  # index of the current argument's first token in the output
    is_predicate: bool = False


class Contextualizer:
    """Lark's post-lexer hook."""

    always_accept = ("WORD", "QUOTED")

    def process(self, stream: Iterator[Token]) -> Iterator[Token]:
        return iter(_mark_predicates(_resolve_words(list(stream))))


def _resolve_words(tokens: list[Token]) -> list[Token]:
    resolved: list[Token] = []
    depth, clause = 0, ""
    for index, token in enumerate(tokens):
        depth += (token.type in OPEN) - (token.type in CLOSE)
        if token.type == "QUOTED":
            resolved.append(Token.new_borrow_pos("NAME", token.value[1:-1].replace("``", "`"), token))
        elif token.type == "WORD":
            before = [t.type for t in resolved[-2:]]
            after = [t.type for t in tokens[index + 1 : index + 3]]
            word = token.value.upper()
            if word in EVENT_WORDS and _is_before_class(before[-1:], tokens[index + 1 : index + 2], depth):
                word_type = word
            else:
                word_type = _word_type(word, ["", "", *before], [*after, "", ""], depth, clause)
            resolved.append(Token.new_borrow_pos(word_type, token.value, token))
            clause = word_type if word_type in CLAUSE_WORDS else clause
        else:
            resolved.append(token)
    return resolved


def _is_before_class(before: list[str], following: list[Token], depth: int) -> bool:
    """Return True if a component of a pattern may start here, and the next word may be its class."""
    if before and before[0] not in STARTS_COMPONENT:
        return False
    names = EVERYWHERE_WORDS if depth else EVERYWHERE_WORDS | CLAUSE_WORDS
    return any(t.type == "QUOTED" or (t.type == "WORD" and t.value.upper() not in names) for t in following)


def _word_type(word: str, before: list[str], after: list[str], depth: int, clause: str) -> str:
    previous, following = before[-1], after[0]
    if previous == "DOT":
        return "NAME"
    if word in EVERYWHERE_WORDS:
        is_call = word in ("AND", "OR") and following == "LPAR" and previous not in ENDS_OPERAND
        return f"{word}_CALL" if is_call else word
    if word == "SEQ":
        if following == "LPAR":
            return "SEQ_CALL"
        return "SEQ_DEFINITION" if after[1] == "EQ" else "SEQ_STATEMENT"
    of_clauses = {
        "BY": previous in ("PARTITION", "GROUP"),
        "EXCLUSIVE": clause == "WITHIN",
        "MERGE": clause == "PREF",
        "TOP": previous == "RETURN" and following == "NUMBER",
    }
    if depth == 0 and of_clauses.get(word, word in CLAUSE_WORDS):
        return word
    if clause == "PREF" and word in OBJECTIVES and following == "LSQB" and previous in ("PREF", "AND"):
        return "OBJECTIVE"
    if word == "TIMESTAMP" and following == "STRING":
        return word
    if previous == "NUMBER" and before[-2] != "TOP":
        return "UNIT"
    return "FUNCTION" if following == "LPAR" else "NAME"


def _mark_predicates(tokens: list[Token]) -> list[Token]:
    marked: list[Token] = []
    brackets: list[_Bracket] = []
    for token in tokens:
        if token.type in MAKES_PREDICATE:
            for call in [bracket for bracket in brackets if bracket.is_call][-1:]:
                call.is_predicate = True
        is_comma = token.type == "COMMA" and bool(brackets) and brackets[-1].is_call
        if is_comma or (brackets and token.type in CLOSE):
            bracket = brackets.pop()
            argument = marked[bracket.argument_start :]
            is_lone_attribute = [t.type for t in argument] == ["LSQB", "NAME", "RSQB"]
            if bracket.is_call and (bracket.is_predicate or is_lone_attribute):
                marked.insert(bracket.argument_start, Token.new_borrow_pos("PREDICATE_MARK", "", argument[0]))
        before = marked[-1].type if marked else ""
        opens_call = token.type == "LPAR" and before in ("SEQ_CALL", "AND_CALL", "OR_CALL")
        marked.append(token)
        if is_comma or token.type in OPEN:
            brackets.append(_Bracket(is_comma or opens_call, len(marked)))
    return marked
