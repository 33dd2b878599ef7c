"""Number the variables of a pattern, find their scopes, and check all that needs no schema.

Everything raised here is a QueryError about the pattern's own structure: names used twice, negations without meaning.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field

from streamsift.errors import QueryError, Span, place
from streamsift.language import syntax as s
from streamsift.language.printer import print_pattern
from streamsift.logical.bound import ROOT_SCOPE


@dataclass(slots=True)
class Slot:
    """A variable before its class is resolved."""

    index: int
    name: str
    event: s.Event
    scope: int
    definition: str | None

    @property
    def output_name(self) -> str:
        return ".".join(self.path)

    @property
    def path(self) -> tuple[str, ...]:
        """The parts of its name, as any clause can write it."""
        return (self.definition, self.name) if self.definition else (self.name,)


@dataclass(slots=True)
class Scopes:
    """The variables of a script in order of appearance, and which negated sub-pattern holds which.

    `parents[i]` is the scope around negated scope i; `operators` gives the variables under each operator node (by id),
    definitions included; `optional` holds the variables that some match leaves unbound.
    """

    script: s.Script
    slots: list[Slot] = field(default_factory=list)
    parents: dict[int, int] = field(default_factory=dict)
    negations: dict[int, s.Not] = field(default_factory=dict)
    operators: dict[int, list[int]] = field(default_factory=dict)
    optional: set[int] = field(default_factory=set)

    @property
    def text(self) -> str:
        return self.script.text

    def fail(self, message: str, span: Span, hint: str = "") -> QueryError:
        return QueryError(message, self.text, span, hint)

    def definition(self, name: str) -> s.Definition | None:
        return next((d for d in self.script.definitions if d.name == name), None)

    def chain(self, scope: int) -> Iterator[int]:
        """A scope and all that enclose it, innermost first, ROOT_SCOPE last."""
        while scope != ROOT_SCOPE:
            yield scope
            scope = self.parents[scope]
        yield ROOT_SCOPE

    def visible(self, variable: int, scope: int) -> bool:
        return self.slots[variable].scope in self.chain(scope)

    def of_definition(self, name: str | None) -> dict[str, int]:
        return {slot.name: slot.index for slot in self.slots if slot.definition == name}

    def can_be_empty(self, pattern: s.Pattern) -> bool:
        """Whether a match of the pattern may bind no event at all."""
        match pattern:
            case s.Event():
                definition = None if pattern.any_row else self.definition(pattern.class_name)
                if definition is not None:
                    return self.can_be_empty(definition.statement.pattern)
                return pattern.quantifier is not None and pattern.quantifier.repeat is s.Repeat.ANY_NUMBER
            case s.Not():
                return True
            case s.Or():
                return any(self.can_be_empty(o) for o in pattern.operands)
            case _:
                return all(self.can_be_empty(o) for o in pattern.operands)


def resolve_scopes(script: s.Script) -> Scopes:
    """Numbers the variables and checks all that can be checked without a schema."""
    scopes = Scopes(script)
    _check_definitions(script)
    events = [event for statement in script.statements for event in statement.pattern.events()]
    uses = Counter(event.class_name for event in events if scopes.definition(event.class_name) is None)
    for statement in script.statements:
        if isinstance(statement.pattern, s.Not):
            hint = "name an event that must be there: SEQ(A, !B, C)."
            raise QueryError("a pattern that is only a negation", script.text, statement.pattern.span, hint)
    walk = _Walk(scopes, uses, set())
    walk.pattern(script.statement.pattern, ROOT_SCOPE, None, optional=False)
    for definition in script.definitions:
        if definition.name not in walk.used:
            hint = "use it in the pattern, or leave it out."
            raise QueryError(f"the definition `{definition.name}` is never used", script.text, definition.span, hint)
    _check_unique(scopes)
    return scopes


def _check_definitions(script: s.Script) -> None:
    names: dict[str, s.Definition] = {}
    for definition in script.definitions:
        if definition.name in names:
            hint = "rename one of them."
            raise QueryError(f"a second definition of `{definition.name}`", script.text, definition.span, hint)
        names[definition.name] = definition
    for definition in script.definitions:
        _check_no_cycle(script, definition, names, ())
        _check_objective_names(script, definition)
    for statement in script.statements:
        seen: set[str] = set()
        for class_definition in statement.classes:
            if class_definition.name in seen:
                message = f"WITH defines `{class_definition.name}` twice"
                raise QueryError(message, script.text, class_definition.span, "join the two predicates with AND or OR.")
            if class_definition.name in names:
                message = f"`{class_definition.name}` is a definition and a WITH class at once"
                raise QueryError(message, script.text, class_definition.span, "rename one of them.")
            seen.add(class_definition.name)


def _check_no_cycle(
    script: s.Script, definition: s.Definition, known: dict[str, s.Definition], path: tuple[str, ...]
) -> None:
    for event in definition.statement.pattern.events():
        used = None if event.any_row else known.get(event.class_name)
        if used is None:
            continue
        if used.name in (*path, definition.name):
            hint = "a repeated event is `A+`."
            raise QueryError(f"the definition `{used.name}` uses itself", script.text, event.span, hint)
        _check_no_cycle(script, used, known, (*path, definition.name))


def _check_objective_names(script: s.Script, definition: s.Definition) -> None:
    """`S1.name` must say one thing: an objective or a variable."""
    preference = definition.statement.preference
    variables = {event.variable or event.class_name for event in definition.statement.pattern.events()}
    seen: set[str] = set()
    for objective in preference.objectives if preference else ():
        if objective.name in seen:
            message = f"a second objective `{objective.name}` in `{definition.name}`"
            raise QueryError(message, script.text, objective.span, "rename one of them.")
        if objective.name in variables:
            message = f"the objective `{objective.name}` has the name of a variable of `{definition.name}`"
            hint = f"`{definition.name}.{objective.name}` could be either: rename one of them."
            raise QueryError(message, script.text, objective.span, hint)
        if objective.name is not None:
            seen.add(objective.name)


@dataclass(slots=True)
class _Walk:
    scopes: Scopes
    uses: Counter[str]
    used: set[str]

    def pattern(self, pattern: s.Pattern, scope: int, definition: str | None, optional: bool) -> list[int]:
        match pattern:
            case s.Event():
                return self._event(pattern, scope, definition, optional)
            case s.Not():
                return self._negation(pattern, scope, definition, optional)
            case _:
                return self._operator(pattern, scope, definition, optional)

    def _operator(self, pattern: s.Seq | s.And | s.Or, scope: int, definition: str | None, optional: bool) -> list[int]:
        name = type(pattern).__name__.upper()
        if all(isinstance(o, s.Not) for o in pattern.operands):
            hint = "at least one operand must be without `!`."
            raise self.scopes.fail(f"{name} has no positive component", pattern.span, hint)
        is_choice = isinstance(pattern, s.Or) and len(pattern.operands) > 1
        variables: list[int] = []
        for operand in pattern.operands:
            if isinstance(pattern, s.Or) and isinstance(operand, s.Not):
                hint = "an alternative must match something: put the negation into a SEQ inside it."
                raise self.scopes.fail("`!` directly under OR", operand.span, hint)
            variables += self.pattern(operand, scope, definition, optional or is_choice)
        self.scopes.operators[id(pattern)] = variables
        return variables

    def _negation(self, pattern: s.Not, scope: int, definition: str | None, optional: bool) -> list[int]:
        if isinstance(pattern.operand, s.Not):
            hint = "leave both out, or negate a SEQ that holds the inner negation."
            raise self.scopes.fail("`!!` negates a negation", pattern.span, hint)
        if self.scopes.can_be_empty(pattern.operand):
            message = f"`!` of something that can be empty: {print_pattern(pattern.operand)}"
            raise self.scopes.fail(message, pattern.span, "an empty match is always there; use `+` instead of `*`.")
        inner = len(self.scopes.parents) + 1
        self.scopes.parents[inner] = scope
        self.scopes.negations[inner] = pattern
        return self.pattern(pattern.operand, inner, definition, optional)

    def _event(self, event: s.Event, scope: int, definition: str | None, optional: bool) -> list[int]:
        used = self.scopes.definition(event.class_name)
        if used is not None and not event.any_row:
            return self._use(used, event, scope, optional)
        name = event.variable or event.class_name
        if event.variable is None and self.uses[event.class_name] > 1:
            raise self.scopes.fail(
                f"the class `{event.class_name}` occurs {self.uses[event.class_name]} times, so each needs a variable",
                event.span,
                f"write e.g. `{event.class_name} x1`.",
            )
        slot = Slot(len(self.scopes.slots), name, event, scope, definition)
        self.scopes.slots.append(slot)
        if optional or (event.quantifier and event.quantifier.repeat is s.Repeat.ANY_NUMBER):
            self.scopes.optional.add(slot.index)
        return [slot.index]

    def _use(self, definition: s.Definition, event: s.Event, scope: int, optional: bool) -> list[int]:
        name = definition.name
        if name in self.used:
            hint = "a definition is used once; write a second one for the second use."
            raise self.scopes.fail(f"the definition `{name}` is used twice", event.span, hint)
        if event.quantifier is not None:
            hint = "`+`, `*` and `[n]` repeat events of one class only."
            raise self.scopes.fail(f"a quantifier on the definition `{name}`", event.quantifier.span, hint)
        if event.variable is not None:
            hint = f"its own variables are `{name}.A`, its objectives `{name}.exp`."
            raise self.scopes.fail(f"a variable for the definition `{name}`", event.variable_span, hint)
        self.used.add(name)
        variables = self.pattern(definition.statement.pattern, scope, name, optional)
        self.scopes.operators[id(definition)] = variables
        return variables


def _check_unique(scopes: Scopes) -> None:
    seen: dict[tuple[str | None, str], Slot] = {}
    for slot in scopes.slots:
        first = seen.setdefault((slot.definition, slot.name), slot)
        if first is not slot:
            first_at = place(scopes.text, first.event.variable_span)
            hint = "every variable needs a name of its own, in OR branches too."
            message = f"the variable `{slot.name}` is used twice, first at {first_at}"
            raise scopes.fail(message, slot.event.variable_span, hint)
        if slot.definition is None and scopes.definition(slot.name) is not None:
            message = f"the variable `{slot.name}` has the name of a definition"
            raise scopes.fail(message, slot.event.variable_span, "rename one of them.")


def check_upper_edges(scopes: Scopes) -> None:
    """A negation at the upper edge of an outermost SEQ is decided when the window ends: it needs one."""
    statement = scopes.script.statement
    _upper_edges(scopes, statement.pattern, statement.window is not None, open_above=True, root=True)


def _upper_edges(scopes: Scopes, pattern: s.Pattern, has_window: bool, open_above: bool, root: bool) -> None:
    match pattern:
        case s.Event():
            definition = None if pattern.any_row else scopes.definition(pattern.class_name)
            if definition is not None:
                # A definition with a window of its own is its own outermost.
                own = definition.statement.window is not None
                _upper_edges(scopes, definition.statement.pattern, has_window or own, open_above or own, root or own)
        case s.Not():
            if open_above and not has_window:
                hint = "without a window it could never be decided; add WITHIN, or put an event after it."
                raise scopes.fail("a negation at the end of the pattern needs WITHIN", pattern.span, hint)
            _upper_edges(scopes, pattern.operand, has_window, open_above, root=False)
        case s.Seq():
            for i, operand in enumerate(pattern.operands):
                before, after = pattern.operands[:i], pattern.operands[i + 1 :]
                # A match binds at least one event: when none can be before, one is after.
                first_of_all = root and isinstance(operand, s.Not) and all(isinstance(o, s.Not) for o in before)
                last = all(scopes.can_be_empty(o) for o in after) and not first_of_all
                _upper_edges(scopes, operand, has_window, open_above and last, root=False)
        case s.And():
            # An AND that no SEQ encloses is bounded by the match's own end.
            for operand in pattern.operands:
                _upper_edges(scopes, operand, has_window, open_above and not root, root=False)
        case s.Or():
            for operand in pattern.operands:
                _upper_edges(scopes, operand, has_window, open_above, root)
