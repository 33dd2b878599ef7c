"""Convert Lark's parse tree of MATCH_RECOGNIZE to a syntax tree with spans."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace
from decimal import Decimal
from typing import Any

from lark import Token, Transformer, v_args
from lark.tree import Meta

from streamsift.errors import NOWHERE, QuerySyntaxError, Span
from streamsift.language import syntax as s
from streamsift.language.keywords import UNIT_OF
from streamsift.language.row_match import syntax as r
from streamsift.language.row_match.labels import DottedName, row_labels, with_labels
from streamsift.language.row_match.literals import duration_of, unquote

_CLAUSES = {  # field of a clause: its keywords
    "partition_by": "PARTITION BY",
    "order_by": "ORDER BY",
    "measures": "MEASURES",
    "rows_per_match": "ROWS PER MATCH",
    "skip": "AFTER MATCH SKIP",
    "pattern": "PATTERN",
    "within": "WITHIN",
    "subsets": "SUBSET",
    "defines": "DEFINE",
}


class _ClauseValue(s.Written):
    field: str
    value: Any


class _Word(s.Written):
    """A name as written: its text, and whether it is in quotes."""

    text: str
    quoted: bool

    @property
    def label(self) -> str:
        return self.text if self.quoted else self.text.upper()


def _nodes(children: list[Any]) -> list[Any]:
    return [child for child in children if not isinstance(child, Token | None)]


def _is_negated(children: list[Any]) -> bool:
    return any(isinstance(child, Token) and child.type == "NOT" for child in children)


def _clause(field: str, value: Callable[[list[Any]], Any]) -> Any:
    return staticmethod(lambda children: _ClauseValue(field, value(children)))


def _clause_of_nodes(field: str) -> Any:
    return _clause(field, lambda children: tuple(_nodes(children)))


def _placed(rule: Callable[[list[Any]], Any], _: str, children: list[Any], meta: Meta) -> Any:
    """Call a rule, and give its node or its error the rule's span unless it has one."""
    span = NOWHERE if meta.empty else Span(meta.start_pos, meta.end_pos)
    try:
        node = rule(children)
    except QuerySyntaxError as error:
        if error.span != NOWHERE:
            raise
        raise QuerySyntaxError(error.message, error.text, span, error.hint) from None
    return replace(node, span=span) if isinstance(node, s.Written) and node.span == NOWHERE else node


def _joined(children: list[Any]) -> r.Raw:
    """Return syntax that only Spark understands: tokens become text."""
    parts: list[Any] = []
    for child in (each for each in children if each is not None):
        piece = f" {child.upper() if child.type != 'STRING' else child} " if isinstance(child, Token) else child
        if isinstance(piece, str) and parts and isinstance(parts[-1], str):
            parts[-1] += piece.lstrip()
        else:
            parts.append(piece)
    if isinstance(parts[0], str):
        parts[0] = parts[0].lstrip()
    if isinstance(parts[-1], str):
        parts[-1] = parts[-1].rstrip()
    return r.Raw(tuple(parts))


@v_args(wrapper=_placed)
class RowTreeBuilder(Transformer[Token, Any]):
    def __init__(self, text: str) -> None:
        super().__init__(visit_tokens=False)
        self.text = text

    def _fail(self, message: str, hint: str = "", at: Token | s.Written | None = None) -> QuerySyntaxError:
        span = at.span if isinstance(at, s.Written) else Span(at.start_pos or 0, at.end_pos or 0) if at else NOWHERE
        return QuerySyntaxError(message, self.text, span, hint)

    # --- the whole ---
    def whole(self, children: list[Any]) -> r.RowScript:
        nodes = _nodes(children)
        alias = nodes.pop() if nodes and isinstance(nodes[-1], tuple) else (None, (), NOWHERE)
        return r.RowScript(self._clauses(nodes), alias[0], alias[1], self.text, alias[2])

    def body(self, children: list[Any]) -> r.RowScript:
        return r.RowScript(self._clauses(_nodes(children)), text=self.text)

    def alias(self, children: list[Any]) -> tuple[str, tuple[str, ...], Span]:
        name, *columns = _nodes(children)
        return name.text, tuple(column.text for column in columns), name.span

    def _clauses(self, clauses: list[_ClauseValue]) -> r.MatchRecognize:
        values: dict[str, Any] = {}
        for clause in clauses:
            if clause.field in values:
                raise self._fail(f"{_CLAUSES[clause.field]} is written twice", "remove one of them.", clause)
            values[clause.field] = clause.value
        if "pattern" not in values:
            end = len(self.text.rstrip())
            hint = "add the pattern, such as PATTERN (A B+ C)."
            span = clauses[-1].span if clauses else Span(0, max(end, 1))
            raise QuerySyntaxError("MATCH_RECOGNIZE requires PATTERN", self.text, span, hint)
        tree = r.MatchRecognize(**values)
        labels = row_labels(tree)
        return with_labels(tree, labels)  # type: ignore[no-any-return]

    # --- clauses ---
    partition_by = _clause_of_nodes("partition_by")
    order_by = _clause_of_nodes("order_by")
    measures = _clause_of_nodes("measures")
    subsets = _clause_of_nodes("subsets")
    defines = _clause_of_nodes("defines")
    pattern_clause = _clause("pattern", lambda children: _nodes(children)[0])
    one_row = _clause("rows_per_match", lambda _: r.RowsPerMatch.ONE)
    all_rows = _clause("rows_per_match", lambda _: r.RowsPerMatch.SHOW_EMPTY)
    omit_empty = _clause("rows_per_match", lambda _: r.RowsPerMatch.OMIT_EMPTY)
    with_unmatched = _clause("rows_per_match", lambda _: r.RowsPerMatch.WITH_UNMATCHED)
    skip_past = _clause("skip", lambda _: r.Skip(r.SkipTo.PAST_LAST_ROW))
    skip_next = _clause("skip", lambda _: r.Skip(r.SkipTo.NEXT_ROW))

    def skip_to(self, children: list[Any]) -> _ClauseValue:
        name = children[-1]
        is_first = any(isinstance(child, Token) and child.type == "FIRST" for child in children)
        return _ClauseValue("skip", r.Skip(r.SkipTo.FIRST if is_first else r.SkipTo.LAST, name.label, span=name.span))

    def within(self, children: list[Any]) -> _ClauseValue:
        _, length, *unit = children
        if length.type == "INTERVAL":
            duration = duration_of(length)
            if duration is None:
                hint = "use days or a smaller unit, such as WITHIN INTERVAL '30' DAY."
                raise self._fail("WITHIN requires an interval of fixed length", hint, length)
        elif length.type == "SUFFIXED":
            number, letter = length[:-1], length[-1].lower()
            if letter not in UNIT_OF:
                raise self._fail(f"`{length}` is not a length", "write WITHIN INTERVAL '10' MINUTE or 10 min.", length)
            duration = s.Duration(self._number(number), UNIT_OF[letter])
        else:
            written = UNIT_OF.get(unit[0].lower(), s.Unit.NONE) if unit and unit[0] else s.Unit.NONE
            duration = s.Duration(self._number(length), written)
        if duration.unit is s.Unit.EVENT:
            raise self._fail(
                "WITHIN does not count rows in MATCH_RECOGNIZE", "limit quantifiers, as in A{1,5}.", length
            )
        if duration.value <= 0:
            raise self._fail("WITHIN requires a positive length", "", length)
        return _ClauseValue("within", replace(duration, span=Span(length.start_pos or 0, length.end_pos or 0)))

    def order_key(self, children: list[Any]) -> r.OrderKey:
        types = [child.type for child in children if isinstance(child, Token)]
        nulls_first = "FIRST" in types if "NULLS" in types else None
        return r.OrderKey(children[0], "DESC" in types, nulls_first)

    def measure(self, children: list[Any]) -> r.RowMeasure:
        return r.RowMeasure(children[0], children[-1].text)

    def subset(self, children: list[Any]) -> r.Subset:
        label, *members = _nodes(children)
        return r.Subset(label.label, tuple(member.label for member in members))

    def definition(self, children: list[Any]) -> r.Define:
        label, condition = _nodes(children)
        return r.Define(label.label, condition)

    # --- patterns ---
    def concatenation(self, children: list[Any]) -> r.Concatenation:
        return r.Concatenation(tuple(children))

    def alternation(self, children: list[Any]) -> r.Alternation:
        return r.Alternation(tuple(_nodes(children)))

    def permutation(self, children: list[Any]) -> r.Permutation:
        return r.Permutation(tuple(_nodes(children)))

    def variable(self, children: list[Any]) -> r.RowVariable:
        word = children[0]
        return r.RowVariable(word.label, written=self.text[word.span.start : word.span.end])

    empty = staticmethod(lambda _: r.Empty())
    group = staticmethod(lambda children: children[1])
    exclusion = staticmethod(lambda children: r.Exclusion(children[1]))
    partition_start = staticmethod(lambda _: r.PartitionStart())
    partition_end = staticmethod(lambda _: r.PartitionEnd())

    def repetition(self, children: list[Any]) -> r.Repetition:
        pattern, (low, high, greedy) = children
        return r.Repetition(pattern, low, high, greedy)

    def sign(self, children: list[Any]) -> tuple[int, int | None, bool]:
        low, high = {"STAR": (0, None), "PLUS": (1, None), "QUESTION": (0, 1)}[children[0].type]
        return low, high, children[1] is None

    def exactly(self, children: list[Any]) -> tuple[int, int | None, bool]:
        count = self._count(children[1])
        return count, count, children[-1] is None

    def between_counts(self, children: list[Any]) -> tuple[int, int | None, bool]:
        low = 0 if children[1] is None else self._count(children[1])
        high = None if children[3] is None else self._count(children[3])
        if high is not None and high < low:
            raise self._fail(f"the quantifier has a minimum of {low} above its maximum of {high}", "swap the two.")
        return low, high, children[-1] is None

    def _count(self, token: Token) -> int:
        if not token.isdigit():
            raise self._fail("a quantifier requires an integer", "write {2} or {2,5}, for example.", token)
        return int(token)

    # --- expressions ---
    any_of = staticmethod(lambda children: s.AnyOf(tuple(_nodes(children))))
    all_of = staticmethod(lambda children: s.AllOf(tuple(_nodes(children))))
    not_expression = staticmethod(lambda children: s.NotExpression(children[1]))
    compared = staticmethod(lambda children: s.Comparison((children[0], children[2]), (children[1],)))
    comparator = staticmethod(lambda children: {"<>": "!=", "==": "="}.get(children[0], str(children[0])))
    is_null = staticmethod(lambda children: s.IsNull(children[0], _is_negated(children)))
    arithmetic = staticmethod(lambda children: s.Arithmetic(str(children[1]), children[0], children[2]))
    negative = staticmethod(lambda children: s.Negative(children[1]))
    group_sign = staticmethod(lambda children: children[1])
    true = staticmethod(lambda children: s.Boolean(True))
    false = staticmethod(lambda children: s.Boolean(False))
    null = staticmethod(lambda children: s.Null())
    string = staticmethod(lambda children: s.String(unquote(children[0])))
    parenthesized = staticmethod(lambda children: replace(children[1], span=NOWHERE))
    infix = staticmethod(_joined)
    raw_constant = staticmethod(lambda children: r.Raw((str(children[0]),)))
    concat = staticmethod(lambda children: s.Call("CONCAT", (children[0], children[2])))

    def in_list(self, children: list[Any]) -> s.InList:
        operand, *items = _nodes(children)
        return s.InList(operand, tuple(items), _is_negated(children))

    def between(self, children: list[Any]) -> s.Between:
        operand, low, high = _nodes(children)
        return s.Between(operand, low, high, _is_negated(children))

    def like(self, children: list[Any]) -> r.RowExpression:
        tokens = [child for child in children if isinstance(child, Token)]
        operand, pattern = _nodes(children)
        word = next(token.upper() for token in tokens if token.type == "LIKE")
        has_escape = any(token.type == "ESCAPE" for token in tokens)
        if word == "LIKE" and isinstance(pattern, s.String) and not has_escape:
            return s.Like(operand, pattern.value, _is_negated(children))
        return _joined(children)

    def number(self, children: list[Token]) -> s.Number:
        return s.Number(self._number(children[0]))

    def _number(self, token: Token) -> int | Decimal:
        if len(token) > 400:
            raise self._fail(f"the number has {len(token)} digits", "use a number of at most 38 digits.", token)
        return int(token) if token.isdigit() else Decimal(token)

    def duration(self, children: list[Token]) -> s.Duration:
        unit = UNIT_OF[children[1].lower()]
        if unit is s.Unit.EVENT:
            raise self._fail("a number of events is not a value", "remove the unit.", children[1])
        return s.Duration(self._number(children[0]), unit)

    def interval(self, children: list[Token]) -> r.RowExpression:
        return duration_of(children[0]) or r.Raw((str(children[0]),))

    def typed(self, children: list[Token]) -> r.RowExpression:
        word = children[0].upper()
        if word == "TIMESTAMP":
            return s.Timestamp(unquote(children[1]))
        return r.Raw((f"{word} {children[1]}" if word not in ("X", "R") else f"{word}{children[1]}",))

    def cast(self, children: list[Any]) -> r.Cast:
        return r.Cast(_nodes(children)[0], next(str(child) for child in children if _is_type(child)))

    def shifted_cast(self, children: list[Any]) -> r.Cast:
        return r.Cast(children[0], str(children[2]))

    def field(self, children: list[Any]) -> r.Raw:
        return r.Raw((children[0], f".`{children[2].text.replace('`', '``')}`"))

    def case(self, children: list[Any]) -> r.Case:
        operand, otherwise = children[1], children[-2]
        branches = tuple(child for child in children if isinstance(child, tuple))
        return r.Case(branches, otherwise, operand)

    def branch(self, children: list[Any]) -> tuple[r.RowExpression, r.RowExpression]:
        condition, value = _nodes(children)
        return condition, value

    def semantics(self, children: list[Any]) -> r.WithSemantics:
        return r.WithSemantics(r.Semantics(children[0].upper()), children[1])

    def _function(self, token: Token) -> str:
        return (token[1:-1].replace("``", "`") if token[0] == "`" else str(token)).upper()

    def call(self, children: list[Any]) -> s.Call:
        return s.Call(self._function(children[0]), tuple(_nodes(children)))

    def distinct_call(self, children: list[Any]) -> s.Call:
        return _call(self._function(children[0]), r.Distinct(_nodes(children)[0]))

    def star_call(self, children: list[Any]) -> s.Call:
        if self._function(children[0]) != "COUNT":
            raise self._fail(f"{children[0]}(*) is not a function", "write COUNT(*), or name a column.")
        return _call("COUNT", r.AllRows())

    def label_star_call(self, children: list[Any]) -> s.Call:
        words = _nodes(children)
        if self._function(children[0]) != "COUNT" or len(words) != 1:
            dotted = ".".join(word.text for word in words)
            raise self._fail(f"{children[0]}({dotted}.*) is not a function", "write COUNT(A.*).")
        return _call("COUNT", r.AllRows(words[0].label, span=words[0].span))

    def from_call(self, children: list[Any]) -> r.Raw:
        """Build EXTRACT(YEAR FROM x), TRIM(BOTH 'a' FROM x), SUBSTRING(x FROM 2 FOR 3)."""
        pieces = list(children)
        if self._function(children[0]) == "EXTRACT" and isinstance(children[3], s.Name):
            pieces[3] = Token("WORD", children[3].parts[0])
        return _joined(pieces)

    def lambda_(self, children: list[Any]) -> r.Lambda:
        names = re.findall(r"[^\W\d]\w*|`[^`]+`", children[0])
        return r.Lambda(tuple(name.strip("`") for name in names), children[1])

    def dotted(self, children: list[Any]) -> s.Name:
        words = _nodes(children)
        return DottedName(tuple(word.text for word in words), label=words[0].label)

    def name(self, children: list[Token]) -> _Word:
        token = children[0]
        if token[0] in '`"':
            return _Word(token[1:-1].replace(token[0] * 2, token[0]), True)
        return _Word(str(token), False)


def _call(function: str, *arguments: r.RowExpression) -> s.Call:
    return s.Call(function, arguments)


def _is_type(child: Any) -> bool:
    return isinstance(child, Token) and child.type == "TYPE"
