"""Write out NEXT, LATEST and UNTIL as the negations that they stand for.

`NEXT B b` is `!B b', B b`: no other B lies between the component before it and b. `LATEST A a` is `A a, !A a'`. The new
variable satisfies each conjunct that mentions b, and besides it only variables written before b (for LATEST: after a),
with itself in place of b. `UNTIL D d` is a negation between the first and the last event of the match.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, fields, replace
from itertools import pairwise
from typing import Any

from streamsift.errors import QueryError, UnsupportedQuery
from streamsift.language import syntax as s
from streamsift.language.keywords import GROUP_FUNCTIONS

_BETWEEN = "write the negation where it applies, such as SEQ(A a, !D d, B b)."


def written_out(script: s.Script) -> s.Script:
    """Return the script without NEXT, LATEST and UNTIL; nodes keep their places in the text."""
    statements = [statement for _, statement in script.statements]
    if not any(statement.until or any(e.nearest for e in statement.pattern.events()) for statement in statements):
        return script
    uses = Counter(event.class_name for statement in statements for event in _all_events(statement))
    rewriting = _Rewriting(script, {each.name for each in script.definitions}, uses, {})
    rewriting.place(script.statement.pattern, None, ())
    return replace(
        script,
        definitions=tuple(
            replace(each, statement=rewriting.statement(each.statement, each.name)) for each in script.definitions
        ),
        statement=rewriting.statement(script.statement, None),
    )


def _all_events(statement: s.Statement) -> Iterator[s.Event]:
    yield from statement.pattern.events()
    if statement.until is not None:
        yield statement.until


_Variable = tuple[str | None, str]  # the definition that it belongs to, and its name


@dataclass(frozen=True, slots=True)
class _Place:
    """Where a variable stands: its number in order of appearance, and the numbers of the negations around it."""

    number: int
    negations: tuple[int, ...]
    event: s.Event


@dataclass(frozen=True, slots=True)
class _Rewriting:
    script: s.Script
    definitions: set[str]
    uses: Counter[str]
    places: dict[_Variable, _Place]

    def fail(self, message: str, at: s.Written, hint: str) -> QueryError:
        return QueryError(message, self.script.text, at.span, hint)

    def place(self, pattern: s.Pattern, definition: str | None, negations: tuple[int, ...]) -> None:
        """Number the variables in order of appearance, those of definitions where they are used."""
        match pattern:
            case s.Event() if self._is_definition(pattern):
                used = next(each for each in self.script.definitions if each.name == pattern.class_name)
                if used.name != definition:  # a definition that uses itself is an error, which the scopes report
                    self.place(used.statement.pattern, used.name, negations)
            case s.Event():
                variable = definition, pattern.variable or pattern.class_name
                self.places[variable] = _Place(len(self.places), negations, pattern)
            case s.Not():
                self.place(pattern.operand, definition, (*negations, pattern.span.start))
            case _:
                for operand in pattern.operands:
                    self.place(operand, definition, negations)

    def statement(self, statement: s.Statement, definition: str | None) -> s.Statement:
        is_outermost = definition is None or statement.window is not None
        self._check(statement.pattern, has_before=not is_outermost, has_after=not is_outermost, in_sequence=False)
        pattern = self._pattern(statement.pattern)
        where = [*_conjuncts(statement.where), *self._pieces(statement, definition)]
        if statement.until is not None:
            pattern = self._until(pattern, self._named(statement.until))
        all_of = where[0] if len(where) == 1 else s.AllOf(tuple(where)) if where else None
        return replace(statement, pattern=pattern, where=all_of, until=None)

    # --- checks ---
    def _check(self, pattern: s.Pattern, *, has_before: bool, has_after: bool, in_sequence: bool) -> None:
        """Raise if a NEXT or a LATEST has no component beside it that bounds it."""
        match pattern:
            case s.Event(nearest=s.Nearest() as nearest):
                self._check_event(pattern, nearest, has_before if nearest is s.Nearest.NEXT else has_after, in_sequence)
            case s.Not(operand=s.Event(nearest=s.Nearest() as nearest) as event):
                hint = f"negate the class: `!{event.class_name}` forbids every event of it."
                raise self.fail(f"`!` cannot negate {nearest.value}", event, hint)
            case s.Not():
                self._check(pattern.operand, has_before=has_before, has_after=has_after, in_sequence=False)
            case s.Seq(operands=operands):
                positive = [not isinstance(operand, s.Not) for operand in operands]
                for number, operand in enumerate(operands):
                    before = has_before or any(positive[:number])
                    after = has_after or any(positive[number + 1 :])
                    self._check(operand, has_before=before, has_after=after, in_sequence=True)
            case s.And(operands=operands) | s.Or(operands=operands):
                for operand in operands:
                    self._check(operand, has_before=has_before, has_after=has_after, in_sequence=False)

    def _check_event(self, event: s.Event, nearest: s.Nearest, has_bound: bool, in_sequence: bool) -> None:
        word, other = nearest.value, "before" if nearest is s.Nearest.NEXT else "after"
        if not event.any_row and event.class_name in self.definitions:
            hint = f"put {word} before a class inside the definition."
            raise self.fail(f"{word} cannot be used before the definition `{event.class_name}`", event, hint)
        if not in_sequence:
            hint = f"write it as a component of a sequence, such as {_EXAMPLES[nearest]}."
            raise self.fail(f"{word} must be a component of SEQ", event, hint)
        if not has_bound:
            raise self.fail(f"{word} needs an event {other} it", event, f"write {_EXAMPLES[nearest]}, for example.")

    # --- patterns ---
    def _named(self, event: s.Event) -> s.Event:
        """Name the variable of a class that occurs once, because its negation is a second occurrence."""
        if event.variable is None and self.uses[event.class_name] == 1:
            return replace(event, variable=event.class_name)
        return event

    def _pattern(self, pattern: s.Pattern) -> s.Pattern:
        match pattern:
            case s.Event():
                return replace(self._named(pattern), nearest=None) if pattern.nearest else pattern
            case s.Not():
                return replace(pattern, operand=self._pattern(pattern.operand))
            case s.Seq():
                operands = tuple(written for operand in pattern.operands for written in self._component(operand))
                return replace(pattern, operands=operands)
            case _:
                return replace(pattern, operands=tuple(map(self._pattern, pattern.operands)))

    def _component(self, operand: s.Pattern) -> Iterator[s.Pattern]:
        """Yield a component of SEQ, with the negation of its NEXT or LATEST before or after it."""
        if not isinstance(operand, s.Event) or operand.nearest is None:
            yield self._pattern(operand)
            return
        event = self._named(operand)
        other = s.Not(
            replace(
                event,
                variable=_other(event.variable or event.class_name),
                quantifier=None,
                nearest=None,
                variable_span=event.span,
            ),
            span=event.span,
        )
        if operand.nearest is s.Nearest.NEXT:
            yield other
        yield replace(event, nearest=None)
        if operand.nearest is s.Nearest.LATEST:
            yield other

    # --- predicates ---
    def _pieces(self, statement: s.Statement, definition: str | None) -> Iterator[s.Expression]:
        """Yield the conjuncts of a statement that the negated events of NEXT and LATEST have to satisfy too."""
        predicates = [p for node in statement.pattern.walk() for p in getattr(node, "predicates", ())]
        conjuncts = [piece for each in (*predicates, statement.where) for piece in _conjuncts(each)]
        for conjunct in conjuncts:
            mentioned = {self._variable(name, definition) for name in _nodes(conjunct) if isinstance(name, s.Name)}
            if _is_aggregate(conjunct):
                continue
            for variable, place in self.places.items():
                others = [self.places.get(each) for each in mentioned - {variable}]
                if place.event.nearest and variable in mentioned and all(_is_given(place, each) for each in others):
                    yield self._renamed(conjunct, variable, definition)

    def _variable(self, name: s.Name, definition: str | None) -> _Variable:
        """Return the variable that a name in a statement or definition begins with."""
        if len(name.parts) > 2 and (name.parts[0], name.parts[1]) in self.places:
            return name.parts[0], name.parts[1]
        own = definition, name.parts[0]
        return own if own in self.places else (None, name.parts[0])

    def _renamed(self, node: Any, old: _Variable, definition: str | None) -> Any:
        match node:
            case s.Name(parts=parts):
                if self._variable(node, definition) != old:
                    return node
                at = 1 if len(parts) > 2 and (parts[0], parts[1]) == old else 0
                return replace(node, parts=(*parts[:at], _other(old[1]), *parts[at + 1 :]))
            case tuple():
                return tuple(self._renamed(each, old, definition) for each in node)
            case s.Written():
                changed = {each.name: self._renamed(getattr(node, each.name), old, definition) for each in fields(node)}
                return replace(node, **changed)
        return node

    # --- UNTIL ---
    def _until(self, pattern: s.Pattern, until: s.Event) -> s.Pattern:
        """Return the pattern with a negation strictly between its first and its last event."""
        if until.quantifier is not None or until.nearest is not None:
            raise self.fail("UNTIL takes a class and a variable", until, "write UNTIL D d, for example.")
        if isinstance(pattern, s.Event) and pattern.quantifier is None and not self._is_definition(pattern):
            return pattern  # nothing lies between the start and the end of one event
        operands = pattern.operands if isinstance(pattern, s.Seq) else (pattern,)
        positive = [number for number, operand in enumerate(operands) if not isinstance(operand, s.Not)]
        ends = [operands[positive[0]], operands[positive[-1]]] if positive else []
        if len(positive) < 2 or not all(self._is_single(end) for end in ends):
            message = "UNTIL is only supported for a SEQ whose first and last components are single events"
            raise UnsupportedQuery(message, self.script.text, until.span, _BETWEEN)
        first, last = positive[0], positive[-1]
        negation = s.Not(until, span=until.span)
        middle = operands[first + 1 : last]
        inner: tuple[s.Pattern, ...] = (*middle, negation)
        if any(not isinstance(operand, s.Not) for operand in middle):
            between = middle[0] if len(middle) == 1 else s.Seq(middle, span=pattern.span)
            inner = (s.And((between, negation), span=pattern.span),)
        predicates = pattern.predicates if isinstance(pattern, s.Seq) else ()
        for shared in (node for node in _nodes(predicates) if isinstance(node, s.SameAttribute)):
            message = f"`[{shared.attribute}]` inside SEQ is not supported together with UNTIL"
            raise UnsupportedQuery(message, self.script.text, shared.span, "write it in WHERE.")
        return s.Seq((*operands[: first + 1], *inner, *operands[last:]), predicates, span=pattern.span)

    def _is_definition(self, event: s.Event) -> bool:
        return not event.any_row and event.class_name in self.definitions

    def _is_single(self, pattern: s.Pattern) -> bool:
        return isinstance(pattern, s.Event) and pattern.quantifier is None and not self._is_definition(pattern)


_EXAMPLES = {s.Nearest.NEXT: "SEQ(A a, NEXT B b)", s.Nearest.LATEST: "SEQ(LATEST A a, B b)"}


def _other(variable: str) -> str:
    """Return the name of the variable that the negation of NEXT or LATEST binds."""
    return f"{variable}'"


def _is_given(place: _Place, other: _Place | None) -> bool:
    """Return True if a variable is bound before that of NEXT (after that of LATEST), and no negation hides it."""
    if other is None or other.negations != place.negations[: len(other.negations)]:
        return False
    is_before = other.number < place.number
    return is_before if place.event.nearest is s.Nearest.NEXT else not is_before


def _conjuncts(predicate: s.Expression | None) -> Iterator[s.Expression]:
    """Yield the conjuncts of a predicate, as the binder splits it."""
    match predicate:
        case None:
            return
        case s.AllOf(operands=operands):
            for operand in operands:
                yield from _conjuncts(operand)
        case s.Comparison(operands=operands, ops=ops) if len(ops) > 1:
            for op, (left, right) in zip(ops, pairwise(operands), strict=True):
                yield s.Comparison((left, right), (op,), span=left.span.to(right.span))
        case _:
            yield predicate


def _nodes(node: Any) -> Iterator[Any]:
    if isinstance(node, tuple):
        for each in node:
            yield from _nodes(each)
    elif isinstance(node, s.Written):
        yield node
        for each in fields(node):
            yield from _nodes(getattr(node, each.name))


def _is_aggregate(expression: s.Expression) -> bool:
    return any(isinstance(node, s.Call) and node.function in GROUP_FUNCTIONS for node in _nodes(expression))
