"""Predicate syntax in, bound pieces out: split at top-level ANDs, chains and `[attr]`, owned, and classified."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import combinations, pairwise

from streamsift.errors import QueryError, Span
from streamsift.language import syntax as s
from streamsift.language.printer import print_expression
from streamsift.logical.bound import ROOT_SCOPE, Column, Expr, Kind, Operation, Predicate, PredicateClass
from streamsift.logical.columns import Columns
from streamsift.logical.expressions import ExpressionBinder, has_group, settled, variables_of
from streamsift.logical.scopes import Scopes

COMPARISONS = frozenset({"=", "!=", "<", "<=", ">", ">="})


@dataclass(frozen=True, slots=True)
class PredicateBinder:
    scopes: Scopes
    columns: Columns
    expressions: ExpressionBinder

    def split(self, expression: s.Expression, variables: list[int]) -> Iterator[Predicate]:
        """The pieces of a predicate that stands in an operator (or WHERE) over `variables`."""
        match expression:
            case s.AllOf():
                for operand in expression.operands:
                    yield from self.split(operand, variables)
            case s.SameAttribute():
                yield from self.same_attribute(expression.attribute, variables, expression.span, f"[{expression.attribute}]")
            case s.Comparison() if len(expression.ops) > 1:
                for op, (left, right) in zip(expression.ops, pairwise(expression.operands), strict=True):
                    span = left.span.to(right.span)
                    text = print_expression(s.Comparison((left, right), (op,)))
                    yield self.piece(self.expressions.comparison(op, left, right, span), text, span)
            case _:
                yield self.piece(self.expressions.predicate(expression), print_expression(expression), expression.span)

    def same_attribute(self, attribute: str, variables: list[int], span: Span, source: str) -> Iterator[Predicate]:
        """Equal `attribute` for every pair of variables that can see each other.

        Neighbouring pairs say the same where every match binds every variable: equality is transitive.
        """
        column, kind = self.columns.find(attribute, self.scopes.text, span)
        if kind is Kind.OTHER:
            raise QueryError(f"{source} compares a {kind.value}", self.scopes.text, span, "nested and binary columns are carried through, not compared.")
        slots = self.scopes.slots
        plain = all(slots[v].scope == ROOT_SCOPE and v not in self.scopes.optional for v in variables)
        for left, right in pairwise(variables) if plain else combinations(variables, 2):
            if self.scopes.visible(left, slots[right].scope) or self.scopes.visible(right, slots[left].scope):
                sides = (Column(left, column, kind, span), Column(right, column, kind, span))
                text = f"{slots[left].output_name}.{attribute} = {slots[right].output_name}.{attribute}"
                yield self.piece(Operation("=", sides, Kind.BOOLEAN, span), text, span)

    def piece(self, expression: Expr, text: str, span: Span) -> Predicate:
        expression = settled(expression)
        variables = tuple(sorted(variables_of(expression)))
        return Predicate(expression, variables, self._owner(variables, span), self._classify(expression, variables), text, span)

    def _owner(self, variables: tuple[int, ...], span: Span) -> int:
        """The innermost negated sub-pattern one of whose variables is mentioned; all the others must be visible there."""
        slots = self.scopes.slots
        owner = max((slots[v].scope for v in variables), key=lambda scope: len(list(self.scopes.chain(scope))), default=ROOT_SCOPE)
        for variable in variables:
            if not self.scopes.visible(variable, owner):
                hidden, inside = slots[variable], self.scopes.negations[owner]
                home = self.scopes.negations[hidden.scope]
                raise QueryError(
                    f"`{hidden.output_name}` is bound inside one negated sub-pattern (column {_column(self.scopes.text, home.span)}) "
                    f"and used with a variable of another (column {_column(self.scopes.text, inside.span)})",
                    self.scopes.text,
                    span,
                    "a negated variable is visible inside its own `!` only.",
                )
        return owner

    def _classify(self, expression: Expr, variables: tuple[int, ...]) -> PredicateClass:
        if has_group(expression):
            return PredicateClass.GROUP
        if len(variables) < 2:
            return PredicateClass.LOCAL if variables else PredicateClass.CONSTANT
        if isinstance(expression, Operation) and expression.op in COMPARISONS:
            left, right = (variables_of(o) for o in expression.operands)
            if len(left) == len(right) == 1:
                return PredicateClass.EQUALITY if expression.op == "=" else PredicateClass.PAIRWISE
        return PredicateClass.GENERAL


def _column(text: str, span: Span) -> int:
    return span.start - (text.rfind("\n", 0, span.start) + 1) + 1
