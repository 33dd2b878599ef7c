"""Number the variables of a pattern, find their scopes, and make all checks that need no schema.

These checks raise QueryError for errors in the structure of a script: names used twice, negations without meaning,
clauses that exclude each other.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field

from streamsift.errors import QueryError, Span, place
from streamsift.language import syntax as s
from streamsift.language.parser import parse
from streamsift.language.printer import print_pattern, print_script
from streamsift.logical.bound import ROOT_SCOPE
from streamsift.logical.written_out import written_out


@dataclass(frozen=True, slots=True)
class Slot:
    """A variable before its class is resolved."""

    name: str
    event: s.Event
    scope: int
    definition: str | None

    @property
    def output_name(self) -> str:
        return ".".join(self.path)

    @property
    def path(self) -> tuple[str, ...]:
        """The parts of the variable's qualified name, which every clause accepts."""
        return (self.definition, self.name) if self.definition else (self.name,)


@dataclass(slots=True)
class Scopes:
    """The variables of a script in order of appearance, and the negated sub-patterns that contain them.

    `parents[i]` is the scope that encloses negated scope i. `variables` holds the variables of each pattern and
    statement, by its id. `optional` holds the variables that some matches leave unbound.
    """

    script: s.Script
    slots: list[Slot] = field(default_factory=list)
    parents: dict[int, int] = field(default_factory=dict)
    negations: dict[int, s.Not] = field(default_factory=dict)
    variables: dict[int, list[int]] = field(default_factory=dict)
    optional: set[int] = field(default_factory=set)

    @property
    def text(self) -> str:
        return self.script.text

    def fail(self, message: str, span: Span, hint: str = "") -> QueryError:
        return QueryError(message, self.text, span, hint)

    def definition(self, name: str) -> s.Definition | None:
        return next((d for d in self.script.definitions if d.name == name), None)

    def use(self, event: s.Event) -> s.Definition | None:
        """Return the definition that an event's class name refers to, if any."""
        return None if event.any_row else self.definition(event.class_name)

    def chain(self, scope: int) -> Iterator[int]:
        """Yield a scope and its enclosing scopes, innermost first, ROOT_SCOPE last."""
        while scope != ROOT_SCOPE:
            yield scope
            scope = self.parents[scope]
        yield ROOT_SCOPE

    def visible(self, variable: int, scope: int) -> bool:
        return self.slots[variable].scope in self.chain(scope)

    def of_definition(self, name: str | None) -> dict[str, int]:
        return {slot.name: variable for variable, slot in enumerate(self.slots) if slot.definition == name}

    def can_be_empty(self, pattern: s.Pattern) -> bool:
        """Return True if a match of the pattern may bind no event."""
        match pattern:
            case s.Event():
                if (definition := self.use(pattern)) is not None:
                    return self.can_be_empty(definition.statement.pattern)
                return pattern.quantifier is not None and pattern.quantifier.repeat is s.Repeat.ANY_NUMBER
            case s.Not():
                return True
            case s.Or():
                return any(map(self.can_be_empty, pattern.operands))
            case _:
                return all(map(self.can_be_empty, pattern.operands))


def resolve_scopes(script: s.Script) -> Scopes:
    """Number the variables and make all checks that need no schema."""
    if not script.text:  # built in Python: errors point into its canonical text
        script = parse(print_script(script))
    script = written_out(script)
    scopes = Scopes(script)
    _check_definitions(scopes)
    events = [event for _, statement in script.statements for event in statement.pattern.events()]
    uses = Counter(event.class_name for event in events if scopes.definition(event.class_name) is None)
    for _, statement in script.statements:
        if isinstance(statement.pattern, s.Not):
            hint = "add an event that must occur, as in SEQ(A, !B, C)."
            raise scopes.fail("a pattern cannot consist of a negation only", statement.pattern.span, hint)
    walk = _Walk(scopes, uses, set())
    walk.statement(script.statement, ROOT_SCOPE, None, optional=False)
    for definition in script.definitions:
        if definition.name not in walk.used:
            hint = "use it in the pattern, or remove it."
            raise scopes.fail(f"the definition `{definition.name}` is never used", definition.span, hint)
    _check_unique(scopes)
    _check_clauses(scopes)
    statement = script.statement
    _check_upper_edges(scopes, statement.pattern, statement.window is not None, open_above=True, root=True)
    return scopes


def _check_definitions(scopes: Scopes) -> None:
    names: set[str] = set()
    for definition in scopes.script.definitions:
        if definition.name in names:
            raise scopes.fail(
                f"`{definition.name}` is defined twice", definition.span, "rename one of the definitions."
            )
        names.add(definition.name)
    for definition in scopes.script.definitions:
        _check_no_cycle(scopes, definition, ())
        _check_objective_names(scopes, definition)
    for _, statement in scopes.script.statements:
        seen: set[str] = set()
        for each in statement.classes:
            if each.name in seen:
                hint = "join the two predicates with AND or OR."
                raise scopes.fail(f"WITH defines `{each.name}` twice", each.span, hint)
            if each.name in names:
                message = f"`{each.name}` is both a definition and a class of WITH"
                raise scopes.fail(message, each.span, "rename one of them.")
            seen.add(each.name)


def _check_no_cycle(scopes: Scopes, definition: s.Definition, path: tuple[str, ...]) -> None:
    path = (*path, definition.name)
    for event in definition.statement.pattern.events():
        if (used := scopes.use(event)) is None:
            continue
        if used.name in path:
            raise scopes.fail(f"the definition `{used.name}` uses itself", event.span, "write `A+` to repeat an event.")
        _check_no_cycle(scopes, used, path)


def _check_objective_names(scopes: Scopes, definition: s.Definition) -> None:
    """Raise if `S1.name` is ambiguous: two objectives, or an objective and a variable."""
    preference = definition.statement.preference
    variables = {event.variable or event.class_name for event in definition.statement.pattern.events()}
    seen: set[str] = set()
    for objective in preference.objectives if preference else ():
        name = objective.name
        if name is None:
            continue
        if name in seen:
            raise scopes.fail(
                f"`{definition.name}` has two objectives named `{name}`", objective.span, "rename one of them."
            )
        if name in variables:
            message = f"`{definition.name}.{name}` is ambiguous: it names an objective and a variable"
            raise scopes.fail(message, objective.span, "rename one of them.")
        seen.add(name)


@dataclass(slots=True)
class _Walk:
    """Number the variables of patterns, and record those of each pattern and statement."""

    scopes: Scopes
    uses: Counter[str]
    used: set[str]

    def statement(self, statement: s.Statement, scope: int, definition: str | None, optional: bool) -> list[int]:
        variables = self._pattern(statement.pattern, scope, definition, optional)
        self.scopes.variables[id(statement)] = variables
        return variables

    def _pattern(self, pattern: s.Pattern, scope: int, definition: str | None, optional: bool) -> list[int]:
        match pattern:
            case s.Event():
                used = self.scopes.use(pattern)
                if used is None:
                    variables = [self._event(pattern, scope, definition, optional)]
                else:
                    self._check_use(used.name, pattern)
                    variables = self.statement(used.statement, scope, used.name, optional)
            case s.Not():
                variables = self._pattern(pattern.operand, self._negation(pattern, scope), definition, optional)
            case _:
                variables = self._operands(pattern, scope, definition, optional)
        self.scopes.variables[id(pattern)] = variables
        return variables

    def _operands(self, pattern: s.Seq | s.And | s.Or, scope: int, definition: str | None, optional: bool) -> list[int]:
        if all(isinstance(operand, s.Not) for operand in pattern.operands):
            hint = "add an operand without `!`."
            raise self.scopes.fail(f"{type(pattern).__name__.upper()} has only negated operands", pattern.span, hint)
        optional = optional or (isinstance(pattern, s.Or) and len(pattern.operands) > 1)
        variables: list[int] = []
        for operand in pattern.operands:
            if isinstance(pattern, s.Or) and isinstance(operand, s.Not):
                hint = "put the negation in a SEQ with a positive event, as in OR(A, SEQ(!B, C))."
                raise self.scopes.fail("an operand of OR cannot be a negation", operand.span, hint)
            variables += self._pattern(operand, scope, definition, optional)
        return variables

    def _negation(self, pattern: s.Not, scope: int) -> int:
        if isinstance(pattern.operand, s.Not):
            hint = "remove both, or negate a SEQ that contains the inner negation."
            raise self.scopes.fail("a negation cannot be negated directly", pattern.span, hint)
        if self.scopes.can_be_empty(pattern.operand):
            message = f"`!` cannot negate `{print_pattern(pattern.operand)}`, which can be empty"
            raise self.scopes.fail(message, pattern.span, "write `+` instead of `*`.")
        inner = len(self.scopes.parents) + 1
        self.scopes.parents[inner] = scope
        self.scopes.negations[inner] = pattern
        return inner

    def _event(self, event: s.Event, scope: int, definition: str | None, optional: bool) -> int:
        name, uses = event.class_name, self.uses[event.class_name]
        if event.variable is None and uses > 1:
            message = f"the class `{name}` occurs {uses} times and needs a variable each time"
            raise self.scopes.fail(message, event.span, f"add a variable, such as `{name} x1`.")
        index = len(self.scopes.slots)
        self.scopes.slots.append(Slot(event.variable or name, event, scope, definition))
        if optional or self.scopes.can_be_empty(event):
            self.scopes.optional.add(index)
        return index

    def _check_use(self, name: str, event: s.Event) -> None:
        if name in self.used:
            hint = "add another definition for the second use."
            raise self.scopes.fail(f"the definition `{name}` is used twice", event.span, hint)
        if event.quantifier is not None:
            hint = "repeat one class, such as `A+`; a sub-pattern cannot be repeated."
            raise self.scopes.fail(f"the definition `{name}` cannot have a quantifier", event.quantifier.span, hint)
        if event.variable is not None:
            hint = f"remove it, and write `{name}.a` for a variable `a` of the definition."
            raise self.scopes.fail(f"the definition `{name}` cannot have a variable", event.variable_span, hint)
        self.used.add(name)


def _check_unique(scopes: Scopes) -> None:
    seen: dict[tuple[str | None, str], Slot] = {}
    for slot in scopes.slots:
        first = seen.setdefault((slot.definition, slot.name), slot)
        if first is not slot:
            first_at = place(scopes.text, first.event.variable_span)
            hint = "give each variable its own name, also in the branches of OR."
            message = f"the variable `{slot.name}` is used twice, first at {first_at}"
            raise scopes.fail(message, slot.event.variable_span, hint)
        if slot.definition is None and scopes.definition(slot.name) is not None:
            message = f"`{slot.name}` is both a variable and a definition"
            raise scopes.fail(message, slot.event.variable_span, "rename one of them.")


def _check_clauses(scopes: Scopes) -> None:
    """Raise, at the clause to change, if clauses exclude each other."""
    statement, definitions = scopes.script.statement, scopes.script.definitions
    agg, update, window, emit = statement.aggregates, statement.update, statement.window, statement.emit
    pref = next((p for p in (statement.preference, *(d.statement.preference for d in definitions)) if p), None)
    limit, items = (statement.returns.limit, statement.returns.items) if statement.returns else (None, ())
    is_each, is_changes = (emit is not None and emit.mode is mode for mode in (s.Emit.EACH, s.Emit.CHANGES))
    by_count = [length.unit is s.Unit.EVENT for length in (update, window and window.length) if length]
    detects, exclusive = not agg and not pref, "cannot be used in the same query"
    top = statement.returns if limit is not None else None
    key, item = next(iter(statement.group_by), None), next(iter(items), None)
    rules: tuple[tuple[object, str, s.Written | None, str], ...] = (  # is wrong if, message, clause if written, hint
        (agg, f"AGG and PREF {exclusive}", pref, "remove one: AGG aggregates matches, PREF ranks them."),
        (not top, "PREF requires RETURN k", pref, "add the number of results, such as RETURN 10."),
        (not pref, "RETURN k requires PREF", top, "add a preference, such as PREF MAX[a.price]."),
        (detects, "GROUP BY requires AGG or PREF", key, "use PARTITION BY or [attr] to find matches per key."),
        (agg, "RETURN cannot list columns in a query with AGG", item, "remove RETURN; name aggregates with AS."),
        (is_each and agg, f"EMIT EACH and AGG {exclusive}", emit, "remove one of them."),
        (is_each and pref, f"EMIT EACH and PREF {exclusive}", emit, "remove one of them."),
        (is_changes and not agg, "EMIT CHANGES requires AGG", emit, "remove EMIT CHANGES, or add an AGG clause."),
        (detects, "UPDATE requires AGG or PREF", update, "remove UPDATE, or add an AGG or PREF clause."),
        (
            is_changes and update,
            f"EMIT CHANGES and UPDATE {exclusive}",
            emit,
            "remove one of them.",
        ),
        (not window, "UPDATE requires WITHIN", update, "add the length of the window, such as WITHIN 10."),
        (
            len(set(by_count)) > 1,
            "WITHIN and UPDATE must both be times or both be numbers of events",
            update,
            "write EVENTS after both lengths, or after neither.",
        ),
    )
    for is_wrong, message, clause, hint in rules:
        if is_wrong and clause is not None:
            raise scopes.fail(message, clause.span, hint)


def _check_upper_edges(scopes: Scopes, pattern: s.Pattern, has_window: bool, open_above: bool, root: bool) -> None:
    """Raise if there is no window to bound a negation at the end of an outermost SEQ."""
    match pattern:
        case s.Event():
            if (definition := scopes.use(pattern)) is not None:
                # A definition with a window counts as an outermost pattern.
                bounds = definition.statement.window is not None
                inner = definition.statement.pattern
                _check_upper_edges(scopes, inner, has_window or bounds, open_above or bounds, root or bounds)
        case s.Not():
            if open_above and not has_window:
                hint = "add WITHIN, or an event after the negation."
                raise scopes.fail("a negation at the end of a pattern requires WITHIN", pattern.span, hint)
            _check_upper_edges(scopes, pattern.operand, has_window, open_above, root=False)
        case s.Seq():
            for i, operand in enumerate(pattern.operands):
                before, after = pattern.operands[:i], pattern.operands[i + 1 :]
                # A match binds at least one event. If all operands before are negations, an event follows.
                first_of_all = root and isinstance(operand, s.Not) and all(isinstance(o, s.Not) for o in before)
                last = all(map(scopes.can_be_empty, after)) and not first_of_all
                _check_upper_edges(scopes, operand, has_window, open_above and last, root=False)
        case s.And() | s.Or():
            # The end of the match bounds an AND that no SEQ encloses.
            is_and = isinstance(pattern, s.And)
            for operand in pattern.operands:
                _check_upper_edges(
                    scopes, operand, has_window, open_above and not (is_and and root), root and not is_and
                )
