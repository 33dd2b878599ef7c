"""Split predicates at top-level ANDs, chains and `[attr]`; find the owner and the class of each piece."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import combinations, pairwise

from streamsift.errors import QueryError, Span, place
from streamsift.language import syntax as s
from streamsift.language.printer import print_expression
from streamsift.logical.bound import (
    ROOT_SCOPE,
    Column,
    Expr,
    GroupAggregate,
    Kind,
    Operation,
    Predicate,
    PredicateClass,
    truth,
)
from streamsift.logical.columns import EventColumns
from streamsift.logical.expressions import ExpressionBinder, settled
from streamsift.logical.scopes import Scopes

COMPARISONS = frozenset({"=", "!=", "<", "<=", ">", ">="})


@dataclass(frozen=True, slots=True)
class PredicateBinder:
    scopes: Scopes
    columns: EventColumns
    expressions: ExpressionBinder

    def split(self, expression: s.Expression, variables: list[int]) -> Iterator[Predicate]:
        """The pieces of a predicate that stands in an operator (or WHERE) over `variables`."""
        match expression:
            case s.AllOf():
                for operand in expression.operands:
                    yield from self.split(operand, variables)
            case s.SameAttribute():
                yield from self.same_attribute(
                    expression.attribute, variables, expression.span, f"[{expression.attribute}]"
                )
            case s.Comparison() if len(expression.ops) > 1:
                for op, (left, right) in zip(expression.ops, pairwise(expression.operands), strict=True):
                    span = left.span.to(right.span)
                    text = print_expression(s.Comparison((left, right), (op,)))
                    yield self.piece(self.expressions.comparison(op, left, right, span), text, span)
            case _:
                written_out = self._written_out(expression, variables)
                yield self.piece(self.expressions.predicate(written_out), print_expression(expression), expression.span)

    def _written_out(self, expression: s.Expression, variables: list[int]) -> s.Expression:
        """Each `[attr]` under NOT or OR as the equalities it stands for, among the operator's positive variables."""
        match expression:
            case s.NotExpression():
                return replace(expression, operand=self._written_out(expression.operand, variables))
            case s.AllOf() | s.AnyOf():
                return replace(expression, operands=tuple(self._written_out(o, variables) for o in expression.operands))
            case s.SameAttribute(attribute=attribute, span=span):
                slots = [self.scopes.slots[v] for v in variables]
                outermost = min((slot.scope for slot in slots), key=self._depth)
                names = [s.Name((*slot.path, attribute), span=span) for slot in slots if slot.scope == outermost]
                pairs = tuple(s.Comparison(pair, ("=",), span=span) for pair in combinations(names, 2))
                return s.AllOf(pairs, span=span) if pairs else s.Boolean(True, span=span)
            case _:
                return expression

    def same_attribute(self, attribute: str, variables: list[int], span: Span, source: str) -> Iterator[Predicate]:
        """Equal `attribute` for every two events of variables that can see each other."""
        column, kind = self.columns.find(attribute, self.scopes.text, span)
        if kind is Kind.OTHER:
            hint = "nested and binary columns are carried through, not compared."
            raise self.scopes.fail(f"{source} compares {kind.value}s", span, hint)
        slots = self.scopes.slots
        pairs = self._equal_pairs(variables)
        for left, right in pairs:
            if self.scopes.visible(left, slots[right].scope) or self.scopes.visible(right, slots[left].scope):
                sides = (Column(left, column, kind, span), Column(right, column, kind, span))
                text = f"{slots[left].output_name}.{attribute} = {slots[right].output_name}.{attribute}"
                yield self.piece(truth("=", sides, span), text, span)
        by_scope: dict[int, list[int]] = {}
        for variable in filter(self._is_group, variables):
            by_scope.setdefault(slots[variable].scope, []).append(variable)
        for scope, groups in by_scope.items():
            if scope != ROOT_SCOPE or not self._single(variables):
                expression = Column(groups[0], column, kind, span)
                yield Predicate(expression, tuple(sorted(groups)), scope, PredicateClass.UNIFORM, source, span)

    def _equal_pairs(self, variables: list[int]) -> Iterator[tuple[int, int]]:
        """The pairs that say that all are equal; those that say no more than others do are left out.

        Elements of a group equal to a single event are equal to each other, and to all that equals that event. With
        no single event, the elements of all groups of one scope are held equal by a predicate of their own.
        """
        slots = self.scopes.slots
        if all(slots[v].scope == ROOT_SCOPE and v not in self.scopes.optional for v in variables) and not any(
            map(self._is_group, variables)
        ):
            yield from pairwise(variables)
            return
        single = self._single(variables)
        for left, right in combinations(variables, 2):
            groups = [v for v in (left, right) if self._is_group(v)]
            is_one_scope = slots[left].scope == slots[right].scope
            positive = [v for v in groups if slots[v].scope == ROOT_SCOPE]
            if not (len(groups) == 2 and is_one_scope) and not (positive and not is_one_scope and single):
                yield left, right

    def _is_group(self, variable: int) -> bool:
        return self.scopes.slots[variable].event.quantifier is not None

    def _single(self, variables: list[int]) -> bool:
        """Whether a positive variable that binds one event in every match is among them."""
        slots = self.scopes.slots
        return any(
            slots[v].scope == ROOT_SCOPE and slots[v].event.quantifier is None and v not in self.scopes.optional
            for v in variables
        )

    def key(self, attribute: str, variables: list[int], span: Span, clause: str) -> Iterator[Predicate]:
        """What PARTITION BY and GROUP BY ask for: `[attribute]`, and no null or NaN where no equality sees to that."""
        yield from self.same_attribute(attribute, variables, span, clause)
        slots = self.scopes.slots
        column, kind = self.columns.find(attribute, self.scopes.text, span)
        for variable in variables:
            if self._always_has_partner(variable, variables):
                continue
            key, name = Column(variable, column, kind, span), f"{slots[variable].output_name}.{attribute}"
            if kind is Kind.FLOAT:  # NaN is no key either: it equals nothing
                yield self.piece(truth("=", (key, key), span), f"{name} = {name}", span)
            else:
                null = truth("is_null", (key,), span)
                yield self.piece(truth("not", (null,), span), f"{name} IS NOT NULL", span)

    def _always_has_partner(self, variable: int, variables: list[int]) -> bool:
        """Whether every match that binds the variable binds another that it is compared with."""
        slots = self.scopes.slots
        others = set(variables) - self.scopes.optional - {variable}
        return any(self.scopes.visible(other, slots[variable].scope) for other in others)

    def piece(self, expression: Expr, text: str, span: Span) -> Predicate:
        expression = settled(expression)
        variables = tuple(sorted(expression.variables))
        return Predicate(
            expression, variables, self._owner(variables, span), self._classify(expression, variables), text, span
        )

    def _owner(self, variables: tuple[int, ...], span: Span) -> int:
        """The innermost negated sub-pattern one of whose variables is mentioned; the others must be visible there."""
        slots = self.scopes.slots
        owner = max((slots[v].scope for v in variables), key=self._depth, default=ROOT_SCOPE)
        for variable in variables:
            if not self.scopes.visible(variable, owner):
                hidden, inside = slots[variable], self.scopes.negations[owner]
                home = self.scopes.negations[hidden.scope]
                raise QueryError(
                    f"`{hidden.output_name}` belongs to the negation at {place(self.scopes.text, home.span)} "
                    f"and is used with a variable of the one at {place(self.scopes.text, inside.span)}",
                    self.scopes.text,
                    span,
                    "a negated variable is visible inside its own `!` only.",
                )
        return owner

    def _depth(self, scope: int) -> int:
        return len(list(self.scopes.chain(scope)))

    def _classify(self, expression: Expr, variables: tuple[int, ...]) -> PredicateClass:
        if any(isinstance(part, GroupAggregate) for part in expression.walk()):
            return PredicateClass.GROUP
        if len(variables) < 2:
            return PredicateClass.LOCAL if variables else PredicateClass.CONSTANT
        if isinstance(expression, Operation) and expression.op in COMPARISONS:
            left, right = (o.variables for o in expression.operands)
            if len(left) == len(right) == 1:
                return PredicateClass.EQUALITY if expression.op == "=" else PredicateClass.PAIRWISE
        return PredicateClass.GENERAL
