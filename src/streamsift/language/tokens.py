"""Settle the meaning of words and brackets: which word is a keyword, which bracket opens what.

The language reads naturally because a word means what its place says. This pass looks at a few neighbouring tokens and
at the brackets around, which an LALR(1) parser cannot, and hands the parser tokens that leave no choice:

- clause keywords count outside brackets only, so that `SEQ(Return r, Update u)` needs no quotes;
- after a dot every word is a column name;
- `AND (` is a call where an operand may start and an infix operator where one has just ended;
- an argument of SEQ/AND/OR that holds a comparison (or a dotted name, which no pattern has) is a predicate.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from lark import Token

CLAUSE_WORDS = frozenset("PATTERN WITH WHERE PARTITION GROUP AGG PREF WITHIN UPDATE EMIT RETURN".split())
EVERYWHERE_WORDS = frozenset("AND OR NOT IN BETWEEN IS LIKE NULL TRUE FALSE AS".split())
# Quoted by the printer: each of these is, somewhere, more than a name.
RESERVED_WORDS = CLAUSE_WORDS | EVERYWHERE_WORDS | frozenset("SEQ BY ANY TOP MERGE EXCLUSIVE TIMESTAMP".split())
OPEN = {"LPAR": "RPAR", "LSQB": "RSQB", "LBRACE": "RBRACE"}
CLOSE = frozenset(OPEN.values())
# After one of these an operand has ended: an AND that follows is infix. `+` and `*` end one when they quantify.
ENDS_OPERAND = frozenset({"NAME", "NUMBER", "UNIT", "STRING", "NULL", "TRUE", "FALSE", "PLUS", "STAR"}) | CLOSE
MAKES_PREDICATE = frozenset({"EQ", "NE", "LT", "LE", "GT", "GE", "IN", "BETWEEN", "IS", "LIKE", "DOT"})


@dataclass(slots=True)
class _Bracket:
    is_call: bool
    argument_start: int  # index in the output where the current argument's tokens begin
    is_predicate: bool = False


class Contextualiser:
    """Lark's post-lexer hook."""

    always_accept = ("WORD", "QUOTED")

    def process(self, stream: Iterator[Token]) -> Iterator[Token]:
        return iter(_mark_predicates(_resolve_words(list(stream))))


def _resolve_words(tokens: list[Token]) -> list[Token]:
    resolved: list[Token] = []
    depth, clause = 0, ""
    for index, token in enumerate(tokens):
        if token.type in OPEN:
            depth += 1
        elif token.type in CLOSE:
            depth -= 1
        if token.type == "QUOTED":
            resolved.append(Token.new_borrow_pos("NAME", token.value[1:-1].replace("``", "`"), token))
        elif token.type == "WORD":
            before = [t.type for t in resolved[-2:]]
            after = [t.type for t in tokens[index + 1 : index + 3]]
            word_type = _word_type(token.value.upper(), ["", "", *before], [*after, "", ""], depth, clause)
            resolved.append(Token.new_borrow_pos(word_type, token.value, token))
            clause = word_type if word_type in CLAUSE_WORDS else clause
        else:
            resolved.append(token)
    return resolved


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
    if depth == 0 and _is_clause_word(word, previous, following, clause):
        return word
    if clause == "PREF" and word in ("MIN", "MAX") and following == "LSQB" and previous in ("PREF", "AND"):
        return "OBJECTIVE"
    if word == "TIMESTAMP" and following == "STRING":
        return word
    if previous == "NUMBER" and before[-2] != "TOP":
        return "UNIT"
    return "FUNCTION" if following == "LPAR" else "NAME"


def _is_clause_word(word: str, previous: str, following: str, clause: str) -> bool:
    match word:
        case "BY":
            return previous in ("PARTITION", "GROUP")
        case "EXCLUSIVE":
            return clause == "WITHIN"
        case "MERGE":
            return clause == "PREF"
        case "TOP":
            return previous == "RETURN" and following == "NUMBER"
        case _:
            return word in CLAUSE_WORDS


def _mark_predicates(tokens: list[Token]) -> list[Token]:
    marked: list[Token] = []
    brackets: list[_Bracket] = []

    def end_argument() -> None:
        bracket = brackets[-1]
        argument = marked[bracket.argument_start :]
        lone_attribute = [t.type for t in argument] == ["LSQB", "NAME", "RSQB"]
        if bracket.is_call and (bracket.is_predicate or lone_attribute):
            mark = Token.new_borrow_pos("PREDICATE_MARK", "", argument[0])
            marked.insert(bracket.argument_start, mark)

    for token in tokens:
        if token.type in MAKES_PREDICATE:
            enclosing = next((b for b in reversed(brackets) if b.is_call), None)
            if enclosing is not None:
                enclosing.is_predicate = True
        if brackets and (token.type in CLOSE or (token.type == "COMMA" and brackets[-1].is_call)):
            end_argument()
        before = marked[-1].type if marked else ""
        opens_call = token.type == "LPAR" and before in ("SEQ_CALL", "AND_CALL", "OR_CALL")
        marked.append(token)
        if token.type in OPEN:
            brackets.append(_Bracket(opens_call, len(marked)))
        elif token.type in CLOSE and brackets:
            brackets.pop()
        elif token.type == "COMMA" and brackets and brackets[-1].is_call:
            brackets[-1] = _Bracket(True, len(marked))
    return marked
