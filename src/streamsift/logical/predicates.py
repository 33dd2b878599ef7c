"""Split predicates at top-level ANDs, chains and `[attr]`, and find the scope and the class of each conjunct."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import combinations, pairwise

from streamsift.errors import Span, place
from streamsift.language import syntax as s
from streamsift.language.printer import print_expression
from streamsift.logical import bound as b
from streamsift.logical.columns import EventColumns
from streamsift.logical.expressions import NESTED_HINT, ExpressionBinder, settled
from streamsift.logical.scopes import Scopes

COMPARISONS = frozenset({"=", "!=", "<", "<=", ">", ">="})


@dataclass(frozen=True, slots=True)
class PredicateBinder:
    scopes: Scopes
    columns: EventColumns
    expressions: ExpressionBinder

    def split(self, expression: s.Expression, variables: list[int]) -> Iterator[b.Predicate]:
        """Yield the conjuncts of a predicate of an operator, or of WHERE, over `variables`."""
        match expression:
            case s.AllOf():
                for operand in expression.operands:
                    yield from self.split(operand, variables)
            case s.SameAttribute():
                source = f"[{expression.attribute}]"
                yield from self.same_attribute(expression.attribute, variables, expression.span, source)
            case s.Comparison() if len(expression.ops) > 1:
                for op, (left, right) in zip(expression.ops, pairwise(expression.operands), strict=True):
                    span = left.span.to(right.span)
                    text = print_expression(s.Comparison((left, right), (op,)))
                    yield self.piece(self.expressions.comparison(op, left, right, span), text, span)
            case _:
                written_out = self._written_out(expression, variables)
                yield self.piece(self.expressions.predicate(written_out), print_expression(expression), expression.span)

    def _written_out(self, expression: s.Expression, variables: list[int]) -> s.Expression:
        """Replace each `[attr]` under NOT or OR by equalities of the operator's positive variables."""
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

    def same_attribute(self, attribute: str, variables: list[int], span: Span, source: str) -> Iterator[b.Predicate]:
        """Yield the predicates that make `attribute` equal for all variables that are visible to each other."""
        column, kind = self.columns.find(attribute, self.scopes.text, span)
        if kind is b.Kind.OTHER:
            raise self.scopes.fail(f"`[{attribute}]` cannot compare {kind.value}s", span, NESTED_HINT)
        slots = self.scopes.slots
        for left, right in self._equal_pairs(variables):
            if self.scopes.visible(left, slots[right].scope) or self.scopes.visible(right, slots[left].scope):
                sides = (b.Column(left, column, kind, span=span), b.Column(right, column, kind, span=span))
                text = f"{slots[left].output_name}.{attribute} = {slots[right].output_name}.{attribute}"
                yield self.piece(b.truth("=", sides, span), text, span)
        by_scope: dict[int, list[int]] = {}
        for variable in filter(self._is_group, variables):
            by_scope.setdefault(slots[variable].scope, []).append(variable)
        for scope, groups in by_scope.items():
            if scope != b.ROOT_SCOPE or not any(map(self._is_single, variables)):
                expression = b.Column(groups[0], column, kind, span=span)
                yield b.Predicate(expression, tuple(sorted(groups)), scope, b.PredicateClass.UNIFORM, source, span=span)

    def _equal_pairs(self, variables: list[int]) -> Iterator[tuple[int, int]]:
        """Yield the pairs of variables whose equality makes all variables equal, without implied pairs.

        If the elements of a Kleene group equal a single event, they equal each other and everything that equals that
        event. Without a single event, a UNIFORM predicate makes the elements of all groups of one scope equal.
        """
        slots = self.scopes.slots
        if all(map(self._is_single, variables)):
            yield from pairwise(variables)
            return
        has_single = any(map(self._is_single, variables))
        for left, right in combinations(variables, 2):
            groups = [v for v in (left, right) if self._is_group(v)]
            is_one_scope = slots[left].scope == slots[right].scope
            positive = [v for v in groups if slots[v].scope == b.ROOT_SCOPE]
            if not (len(groups) == 2 and is_one_scope) and not (positive and not is_one_scope and has_single):
                yield left, right

    def _is_group(self, variable: int) -> bool:
        return self.scopes.slots[variable].event.quantifier is not None

    def _is_single(self, variable: int) -> bool:
        """Return True if a positive variable binds a single event in every match."""
        slot = self.scopes.slots[variable]
        return slot.scope == b.ROOT_SCOPE and slot.event.quantifier is None and variable not in self.scopes.optional

    def key(self, attribute: str, variables: list[int], span: Span, clause: str) -> Iterator[b.Predicate]:
        """Yield the predicates of PARTITION BY and GROUP BY: `[attribute]`, and not null or NaN unless implied."""
        yield from self.same_attribute(attribute, variables, span, clause)
        slots = self.scopes.slots
        column, kind = self.columns.find(attribute, self.scopes.text, span)
        always = set(variables) - self.scopes.optional
        for variable in variables:
            if any(self.scopes.visible(other, slots[variable].scope) for other in always - {variable}):
                continue  # an equality excludes nulls in every match
            key, name = b.Column(variable, column, kind, span=span), f"{slots[variable].output_name}.{attribute}"
            if kind is b.Kind.FLOAT:  # excludes NaN too, which equals nothing
                yield self.piece(b.truth("=", (key, key), span), f"{name} = {name}", span)
            else:
                null = b.truth("is_null", (key,), span)
                yield self.piece(b.truth("not", (null,), span), f"{name} IS NOT NULL", span)

    def piece(self, expression: b.Expr, text: str, span: Span) -> b.Predicate:
        expression = settled(expression)
        variables = tuple(sorted(expression.variables))
        owner, predicate_class = self._owner(variables, span), self._classify(expression, variables)
        return b.Predicate(expression, variables, owner, predicate_class, text, span=span)

    def _owner(self, variables: tuple[int, ...], span: Span) -> int:
        """Return the innermost scope of the variables; raise if one of them is not visible there."""
        slots = self.scopes.slots
        owner = max((slots[v].scope for v in variables), key=self._depth, default=b.ROOT_SCOPE)
        for hidden in (slots[v] for v in variables if not self.scopes.visible(v, owner)):
            places = [place(self.scopes.text, self.scopes.negations[scope].span) for scope in (hidden.scope, owner)]
            raise self.scopes.fail(
                f"`{hidden.output_name}` belongs to the negation at {places[0]} "
                f"and cannot be used with a variable of the negation at {places[1]}",
                span,
                "compare each of them with a variable that is not negated.",
            )
        return owner

    def _depth(self, scope: int) -> int:
        return len(list(self.scopes.chain(scope)))

    def _classify(self, expression: b.Expr, variables: tuple[int, ...]) -> b.PredicateClass:
        if any(isinstance(part, b.GroupAggregate) for part in expression.walk()):
            return b.PredicateClass.GROUP
        if len(variables) < 2:
            return b.PredicateClass.LOCAL if variables else b.PredicateClass.CONSTANT
        if isinstance(expression, b.Operation) and expression.op in COMPARISONS:
            left, right = (o.variables for o in expression.operands)
            if len(left) == len(right) == 1:
                return b.PredicateClass.EQUALITY if expression.op == "=" else b.PredicateClass.PAIRWISE
        return b.PredicateClass.GENERAL
