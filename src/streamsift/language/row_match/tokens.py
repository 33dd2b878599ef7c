"""Resolve the words of MATCH_RECOGNIZE by their context: keywords, functions, names, types and units.

Every keyword of the clause is a name where it cannot be a keyword: after a dot, after AS in MEASURES, or without the
words that must follow it. So columns named `pattern`, `match` or `end` need no quotes.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from lark import Token

from streamsift.language.keywords import UNIT_OF

NAMES = ("WORD", "QUOTED", "DQUOTED")
_FIRST_WORDS = {  # the first word of a clause, and what may follow it
    "PARTITION": "BY",
    "ORDER": "BY",
    "ONE": "ROW",
    "ALL": "ROWS",
    "AFTER": "MATCH",
}
_OF_CLAUSE = {
    "ONE": frozenset("ROW PER MATCH".split()),
    "ALL": frozenset("ROWS PER MATCH SHOW OMIT EMPTY MATCHES WITH UNMATCHED".split()),
    "AFTER": frozenset("MATCH SKIP PAST TO ROW".split()),
}
KEYWORDS = frozenset(
    "MATCH_RECOGNIZE PARTITION BY ORDER MEASURES ONE ALL ROW ROWS PER MATCH SHOW OMIT EMPTY MATCHES WITH UNMATCHED "
    "AFTER SKIP PAST TO NEXT FIRST LAST PATTERN PERMUTE WITHIN SUBSET DEFINE AS ASC DESC NULLS AND OR NOT IN BETWEEN "
    "IS NULL LIKE ESCAPE CASE WHEN THEN ELSE END TRUE FALSE UNKNOWN DISTINCT FROM FOR DIV CAST RUNNING FINAL".split()
)
CLAUSE_WORDS = ("PARTITION BY", "ORDER BY", "MEASURES", "ONE ROW PER MATCH", "ALL ROWS PER MATCH", "AFTER MATCH SKIP",
                "PATTERN", "WITHIN", "SUBSET", "DEFINE")  # fmt: skip
_INFIX = frozenset("AND OR NOT IN BETWEEN IS ESCAPE DIV".split())
_LIKES = frozenset("LIKE ILIKE RLIKE REGEXP".split())
_STARTS_OPERAND = frozenset({*NAMES, "NUMBER", "SUFFIXED", "STRING", "LPAR", "MINUS", "PLUS", "BANG", "TILDE"})
_TYPED = frozenset("DATE TIMESTAMP TIMESTAMP_NTZ TIMESTAMP_LTZ TIME X R".split())
_INTERVAL_UNITS = frozenset(
    f"{unit}{plural}"
    for unit in "MICROSECOND MILLISECOND SECOND MINUTE HOUR DAY WEEK MONTH YEAR".split()
    for plural in ("", "S")
)
_OPEN, _CLOSE = frozenset({"LPAR", "LSQB", "LBRACE"}), frozenset({"RPAR", "RSQB", "RBRACE"})


class RowContextualizer:
    """Lark's post-lexer hook."""

    always_accept = (*NAMES, "ARROW")

    def process(self, stream: Iterator[Token]) -> Iterator[Token]:
        return iter(_Resolver(list(stream)).resolve())


@dataclass(slots=True)
class _Resolver:
    tokens: list[Token]
    resolved: list[Token] = field(default_factory=list)
    brackets: list[str] = field(default_factory=list)  # the type of the token before each open bracket
    cases: int = 0
    clause: str = ""
    base: int = 0

    def resolve(self) -> list[Token]:
        index = 0
        while index < len(self.tokens):
            index += self._take(index)
        return self.resolved

    def _take(self, index: int) -> int:
        """Resolve the token at the index, with those that belong to it; return how many."""
        token = self.tokens[index]
        if token.type in NAMES:
            return self._take_word(index)
        if token.type in _OPEN:
            self.brackets.append(self._before())
        elif token.type in _CLOSE and self.brackets:
            self.brackets.pop()
            if len(self.brackets) < self.base:
                self.clause = "ALIAS"
        elif token.type == "LPAR":
            pass
        if token.type == "LPAR" and (length := self._lambda_length(index)):
            self.brackets.pop()
            return self._fold("LAMBDA", index, length)
        self.resolved.append(token)
        if token.type == "LPAR" and self.clause == "" and self._before(2) == "MATCH_RECOGNIZE":
            self.base = len(self.brackets)
        if token.type == "DCOLON":
            return 1 + self._fold_type(index + 1)
        return 1

    def _before(self, places: int = 1) -> str:
        return self.resolved[-places].type if len(self.resolved) >= places else ""

    def _after(self, index: int, places: int = 1) -> str:
        """Return the type of a later token; a word's upper-case text."""
        at = index + places
        if at >= len(self.tokens):
            return ""
        token = self.tokens[at]
        return token.value.upper() if token.type == "WORD" else token.type

    def _after_type(self, index: int, places: int = 1) -> str:
        return self.tokens[index + places].type if index + places < len(self.tokens) else ""

    def _emit(self, kind: str, token: Token) -> int:
        self.resolved.append(Token.new_borrow_pos(kind, token.value, token))
        return 1

    def _fold(self, kind: str, index: int, count: int) -> int:
        """Replace tokens by one with their text."""
        tokens = self.tokens[index : index + count]
        if not tokens:
            return 0
        folded = Token.new_borrow_pos(kind, " ".join(token.value for token in tokens), tokens[0])
        folded.end_pos = tokens[-1].end_pos
        self.resolved.append(folded)
        return count

    def _lambda_length(self, index: int) -> int:
        """Return the number of tokens of `(x, y) ->`, or 0."""
        at = index + 1
        while self._after_type(at, 0) in ("WORD", "QUOTED") and self._after_type(at) == "COMMA":
            at += 2
        closes = self._after_type(at, 0) in ("WORD", "QUOTED") and self._after_type(at) == "RPAR"
        return at + 3 - index if closes and self._after_type(at, 2) == "ARROW" else 0

    def _fold_type(self, index: int) -> int:
        """Fold the type after `::`: a word with optional arguments."""
        if self._after_type(index, 0) not in NAMES:
            return 0
        closing = {"LPAR": "RPAR", "LT": "GT"}.get(self._after_type(index), "")
        count = 1
        if closing:
            depth = 0
            for token in self.tokens[index + 1 :]:
                count += 1
                depth += (token.type == self._after_type(index)) - (token.type == closing)
                if depth == 0:
                    break
        return self._fold("TYPE", index, count)

    # --- words ---
    def _take_word(self, index: int) -> int:
        token = self.tokens[index]
        if token.type == "DQUOTED":
            return self._emit("NAME" if self._is_quoted_name(index) else "STRING", token)
        if token.type == "QUOTED":
            is_call = self._after(index) == "LPAR" and self.clause not in ("PATTERN", "SUBSET", "ALIAS", "")
            return self._emit("FUNCTION" if is_call and self._before() != "AS" else "NAME", token)
        word = token.value.upper()
        at_top = len(self.brackets) == self.base
        if self._before() == "DOT":
            return self._emit("NAME", token)
        if not self.resolved and word == "MATCH_RECOGNIZE" and self._after(index) == "LPAR":
            return self._emit(word, token)
        if at_top and self._starts_clause(word, index):
            self.clause, self.cases = word, 0
            return self._emit(word, token)
        if self.clause == "PATTERN":
            return self._emit("PERMUTE" if word == "PERMUTE" and self._after(index) == "LPAR" else "NAME", token)
        if self.clause == "ALIAS":
            is_as = word == "AS" and self._after_type(index) in NAMES
            return self._emit("AS" if is_as else "NAME", token)
        if self.clause == "SUBSET":
            return self._emit("NAME", token)
        if at_top and (kind := self._of_clause(word, index)):
            return self._emit(kind, token)
        return self._of_expression(word, index)

    def _is_quoted_name(self, index: int) -> bool:
        if self.clause in ("PATTERN", "SUBSET", "AFTER", "ALIAS") or "DOT" in (self._before(), self._after(index)):
            return True
        at_top = len(self.brackets) == self.base
        if at_top and self.clause == "MEASURES" and (self._before() == "AS" or self._ends_measure(index)):
            return True
        if at_top and self.clause == "DEFINE" and self._after(index) == "AS":
            return True
        return self._before(1) == "LPAR" and len(self.resolved) > 1 and self.resolved[-2].value.upper() == "CLASSIFIER"

    def _ends_measure(self, index: int) -> bool:
        """Return True for a name after an expression without AS."""
        ends = self._before() in ("NAME", "RPAR", "NUMBER", "STRING", "END", "TYPE", "RSQB")
        return ends and not (self._before() == "STRING" and self._after(index) == "DOT")

    def _starts_clause(self, word: str, index: int) -> bool:
        after, kind = self._after(index), self._after_type(index)
        if self._before() in ("AS", "DOT", "COMMA") and not (self._before() == "AS" and self.clause == "ALIAS"):
            return False
        if word in _FIRST_WORDS:
            return after == _FIRST_WORDS[word]
        match word:
            case "MEASURES":
                return kind in _STARTS_OPERAND and after not in _INFIX | {"AS"}
            case "PATTERN":
                return after == "LPAR"
            case "SUBSET":
                return kind in NAMES and self._after(index, 2) == "EQ"
            case "DEFINE":
                return kind in NAMES and self._after(index, 2) == "AS"
            case "WITHIN":
                return after in ("INTERVAL", "NUMBER", "SUFFIXED")
            case _:
                return False

    def _of_clause(self, word: str, index: int) -> str:
        """Return the type of a word at the top of a clause that has words of its own; else an empty string."""
        before, after = self._before(), self._after(index)
        if word == "BY" and before in ("PARTITION", "ORDER"):
            return "BY"
        if self.clause in ("ONE", "ALL"):
            return word if word in _OF_CLAUSE[self.clause] else "NAME"
        if self.clause == "AFTER":
            if before == "TO":
                named = self._after_type(index) in NAMES and not self._starts_clause(after, index + 1)
                is_keyword = after == "ROW" if word == "NEXT" else word in ("FIRST", "LAST") and named
                return word if is_keyword else "NAME"
            return word if word in _OF_CLAUSE["AFTER"] or (word == "LAST" and before == "PAST") else "NAME"
        if self.clause == "ORDER":
            if before == "NULLS" and word in ("FIRST", "LAST"):
                return word
            if word in ("ASC", "DESC") and before not in ("BY", "COMMA"):
                return word
            if word == "NULLS" and after in ("FIRST", "LAST") and before not in ("BY", "COMMA"):
                return word
            return ""
        if word == "AS" and self.clause in ("MEASURES", "DEFINE"):
            return "AS"
        if self.clause == "MEASURES" and before == "AS":
            return "NAME"
        if self.clause == "DEFINE" and after == "AS" and before in ("DEFINE", "COMMA"):
            return "NAME"
        return ""

    def _of_expression(self, word: str, index: int) -> int:
        token, before = self.tokens[index], self._before()
        after, kind = self._after(index), self._after_type(index)
        if word == "INTERVAL" and after in ("STRING", "DQUOTED", "NUMBER", "MINUS", "PLUS"):
            return self._fold_interval(index)
        if kind == "ARROW":
            return self._fold("LAMBDA", index, 2)
        if word in ("CAST", "TRY_CAST") and after == "LPAR":
            return self._emit("CAST", token)
        if word == "AS" and self.brackets and self.brackets[-1] == "CAST":
            return self._emit("AS", token) + self._fold("TYPE", index + 1, self._length_to_close(index + 1))
        if word in _TYPED and kind == "STRING":
            return self._emit("TYPED", token)
        if word in _LIKES:
            return self._emit("LIKE", token)
        if word in ("NULL", "TRUE", "FALSE") or word in _INFIX:
            return self._emit(word, token)
        if word == "UNKNOWN" and before in ("IS", "NOT"):
            return self._emit(word, token)
        if word == "DISTINCT" and (before in ("IS", "LPAR") or (before == "NOT" and self._before(2) == "IS")):
            return self._emit(word, token)
        if word == "CASE" and kind in _STARTS_OPERAND and after not in _INFIX:
            self.cases += 1
            return self._emit(word, token)
        if self.cases and word in ("WHEN", "THEN", "ELSE", "END"):
            self.cases -= word == "END"
            return self._emit(word, token)
        if word in ("RUNNING", "FINAL") and kind in ("WORD", "QUOTED") and self._after(index, 2) == "LPAR":
            return self._emit(word, token)
        if word in ("BOTH", "LEADING", "TRAILING") and before == "LPAR" and kind in _STARTS_OPERAND:
            return self._emit("TRIMMED", token)
        if word in ("FROM", "FOR") and (self.brackets or before == "DISTINCT"):
            return self._emit(word, token)
        if before == "NUMBER" and word.lower() in UNIT_OF:
            return self._emit("UNIT", token)
        return self._emit("FUNCTION" if after == "LPAR" else "NAME", token)

    def _length_to_close(self, index: int) -> int:
        depth = 0
        for count, token in enumerate(self.tokens[index:]):
            depth += (token.type in _OPEN) - (token.type in _CLOSE)
            if depth < 0:
                return count
        return 0

    def _fold_interval(self, index: int) -> int:
        count = 1
        while True:
            count += self._after(index, count) in ("MINUS", "PLUS")
            if self._after(index, count) not in ("STRING", "DQUOTED", "NUMBER"):
                break
            count += 1
            if self._after(index, count) in _INTERVAL_UNITS:
                count += 1
                if self._after(index, count) == "TO" and self._after(index, count + 1) in _INTERVAL_UNITS:
                    count += 2
            if self._after(index, count) != "NUMBER":
                break
        return self._fold("INTERVAL", index, count)
