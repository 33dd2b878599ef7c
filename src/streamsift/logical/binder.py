"""Bind a script to a schema; raise QueryError at whatever makes no sense."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, tzinfo
from fractions import Fraction

import pyarrow as pa

from streamsift.errors import QueryError, Span, nearest, place, with_article
from streamsift.language import syntax as s
from streamsift.language.parser import parse
from streamsift.language.printer import print_duration, print_expression, print_script
from streamsift.logical import bound as b
from streamsift.logical.clauses import check_clauses
from streamsift.logical.columns import UNKNOWN_COLUMNS, EventColumns, bind_columns
from streamsift.logical.expressions import SECONDS_PER_UNIT, ExpressionBinder, settled
from streamsift.logical.predicates import PredicateBinder
from streamsift.logical.preferences import preference_class
from streamsift.logical.scopes import Scopes, check_upper_edges, resolve_scopes


def check(script: s.Script) -> Scopes:
    """All checks that need no schema: structure, clause combinations, names of variables and outputs, literals."""
    scopes = _structure(script)
    _bound(scopes, UNKNOWN_COLUMNS)
    return scopes


def sketch(script: s.Script) -> b.BoundQuery:
    """What a query means as far as that can be told without a schema: for pictures, not for plans."""
    return _bound(_structure(script), UNKNOWN_COLUMNS)


def _structure(script: s.Script) -> Scopes:
    if not script.text:  # built in Python: its canonical text gives errors a place to point at
        script = parse(print_script(script))
    scopes = resolve_scopes(script)
    check_clauses(scopes)
    check_upper_edges(scopes)
    return scopes


def _bound(scopes: Scopes, columns: EventColumns) -> b.BoundQuery:
    try:
        return _Binder(scopes, columns).query()
    except RecursionError:
        raise QueryError("the query is nested too deeply", hint="split it, or drop brackets.") from None


def bind(
    script: s.Script,
    schema: pa.Schema,
    *,
    time: str,
    type: str | None = None,
    order: str | None = None,
    case_sensitive: bool = False,
    zone: tzinfo = UTC,
    distinct_case: bool = True,
) -> b.BoundQuery:
    """What the script means for events of this schema.

    `zone` is that of a timestamp literal that names none; `distinct_case`: output columns may differ by case only.
    """
    return _bound(_structure(script), bind_columns(schema, time, type, order, case_sensitive, zone, distinct_case))


_Operator = b.Sequence | b.Conjunction | b.Disjunction
_OPERATORS: dict[type[s.Pattern], type[_Operator]] = {s.Seq: b.Sequence, s.And: b.Conjunction, s.Or: b.Disjunction}
_RENAME_VARIABLE = "rename the variable, or RETURN it AS another name."


@dataclass(slots=True)
class _Binder:
    scopes: Scopes
    columns: EventColumns

    @property
    def text(self) -> str:
        return self.scopes.text

    def _fail(self, message: str, span: Span, hint: str = "") -> QueryError:
        return self.scopes.fail(message, span, hint)

    def query(self) -> b.BoundQuery:
        statement = self.scopes.script.statement
        items = statement.returns.items if statement.returns else ()
        variables = self._variables()
        whole = tuple(b.WholeEvent(v.index, v.name, v.span) for v in variables if v.positive)
        query = b.BoundQuery(  # in this order, which is that of the complaints
            variables=variables,
            pattern=self._node(statement.pattern),
            window=self._window(statement.window),
            update=self._length(statement.update, "UPDATE", False) if statement.update else None,
            partition_by=self._key_columns(statement.partition_by, "PARTITION BY"),
            group_by=self._key_columns(statement.group_by, "GROUP BY"),
            predicates=tuple(self._predicates()),
            ranking=self._ranking(statement),
            aggregates=tuple(self._aggregate(a) for a in statement.aggregates),
            output=() if statement.aggregates else tuple(self._item(i) for i in items) or whole,
            group_names=tuple(name.parts[-1] for name in statement.group_by),
            emit=statement.emit.mode if statement.emit else s.Emit.FINAL,
            show_bounds=not items and not statement.aggregates,
            binding=self.columns.binding,
            schema=self.columns.schema,
            text=self.text,
        )
        self._check_output_names(query, "give it another name with AS." if items else _RENAME_VARIABLE)
        self._check_whole_events(query)
        return query

    # --- classes and pattern ---
    def _variables(self) -> tuple[b.Variable, ...]:
        self._check_classes()
        variables = []
        for slot in self.scopes.slots:
            event_class = self._class(slot.event, slot.definition)
            variables.append(
                b.Variable(
                    slot.index, slot.output_name, event_class, slot.event.quantifier, slot.scope, slot.event.span
                )
            )
        return tuple(variables)

    def _class(self, event: s.Event, definition: str | None) -> b.EventClass:
        defined = self._class_definition(event.class_name, definition)
        if defined is not None:
            return b.EventClass(
                event.class_name, b.ClassRule.WITH, settled(self._row_binder().predicate(defined.predicate))
            )
        if event.any_row:
            return b.EventClass("ANY", b.ClassRule.ANY)
        return b.EventClass(event.class_name, b.ClassRule.TYPE if self.columns.binding.type else b.ClassRule.ALL)

    def _check_classes(self) -> None:
        """A class that no variable uses must make sense all the same."""
        script = self.scopes.script
        for statement in script.statements:
            for defined in statement.classes:
                self._row_binder().predicate(defined.predicate)

    def _class_definition(self, name: str, definition: str | None) -> s.ClassDefinition | None:
        """The WITH entry that a class name means: the definition's own, else the statement's."""
        statements = [self.scopes.script.statement]
        if definition is not None and (own := self.scopes.definition(definition)) is not None:
            statements.insert(0, own.statement)
        return next((c for st in statements for c in st.classes if c.name == name), None)

    def _row_binder(self) -> ExpressionBinder:
        def resolve(name: s.Name) -> b.Expr:
            if len(name.parts) > 1:
                hint = f"WITH looks at one row: write the column alone, `{name.parts[-1]}`."
                raise self._fail(f"`{'.'.join(name.parts)}` in WITH", name.span, hint)
            column, kind = self.columns.find(name.parts[0], self.text, name.span)
            return b.Column(b.THIS_ROW, column, kind, name.span)

        def group(call: s.Call) -> b.GroupAggregate:
            hint = "WITH looks at one row; there is no group to aggregate."
            raise self._fail(f"{call.function} in WITH", call.span, hint)

        return ExpressionBinder(self.text, resolve, group, self.columns)

    def _node(self, pattern: s.Pattern) -> b.Node:
        slot_of = {id(slot.event): slot.index for slot in self.scopes.slots}
        scope_of = {id(negation): scope for scope, negation in self.scopes.negations.items()}

        def build(pattern: s.Pattern) -> b.Node:
            match pattern:
                case s.Event():
                    if id(pattern) in slot_of:
                        return b.Leaf(slot_of[id(pattern)], pattern.span)
                    definition = self.scopes.definition(pattern.class_name)
                    assert definition is not None
                    window = self._window(definition.statement.window)
                    child, keys = build(definition.statement.pattern), definition.statement.partition_by
                    partition_by = self._key_columns(keys, "PARTITION BY")
                    return b.SubPattern(definition.name, child, window, pattern.span, partition_by)
                case s.Not():
                    return b.Negated(build(pattern.operand), scope_of[id(pattern)], pattern.span)
                case s.Seq() | s.And() | s.Or():
                    return _OPERATORS[type(pattern)](tuple(build(o) for o in pattern.operands), pattern.span)

        return build(pattern)

    # --- names ---
    def _binder(self, definition: str | None, inside: tuple[s.Objective, ...] = ()) -> ExpressionBinder:
        """Binds expressions of the statement (None) or inside a definition, where its variables have short names.

        `inside` are the objectives whose expressions are being bound: none of them may lead back to itself.
        """
        names = {**self.scopes.of_definition(None), **self.scopes.of_definition(definition)}

        def resolve(name: s.Name) -> b.Expr:
            variable, attribute = self._variable_of(name, definition, names)
            if isinstance(attribute, s.Objective):
                if any(attribute is outer for outer in inside):
                    hint = "write out what it should be, over the variables' attributes."
                    raise self._fail(f"the objective `{'.'.join(name.parts)}` is defined by itself", name.span, hint)
                return self._binder(name.parts[0], (*inside, attribute)).bind(attribute.expression)
            assert variable is not None
            column, kind = self.columns.find(attribute, self.text, name.span)
            return b.Column(variable, column, kind, name.span)

        def group(call: s.Call) -> b.GroupAggregate:
            return self._group(call, names, definition)

        return ExpressionBinder(self.text, resolve, group, self.columns)

    def _variable_of(
        self, name: s.Name, definition: str | None, names: dict[str, int]
    ) -> tuple[int, str] | tuple[None, s.Objective]:
        first, *rest = name.parts
        inner = self.scopes.definition(first)
        if inner is not None and rest and first not in names:
            if len(rest) == 1:
                return None, self._objective_of(inner, rest[0], name.span)
            variables = self.scopes.of_definition(first)
            if rest[0] not in variables:
                raise self._fail(f"`{first}` has no variable `{rest[0]}`", name.span, nearest(rest[0], variables))
            self._no_more_parts(name, 3)
            return variables[rest[0]], rest[1]
        if not rest:
            hint = (
                f"`{first}` is a variable: name an attribute of it, `{first}.…`."
                if first in names
                else "in WHERE, PREF and RETURN an attribute is `variable.column`."
            )
            raise self._fail(f"`{first}` is not an attribute of a variable", name.span, hint)
        if first not in names:
            qualified = {
                f"{slot.definition}.{slot.name}" for slot in self.scopes.slots if slot.definition and slot.name == first
            }
            hint = f"outside its definition it is `{min(qualified)}`." if qualified else self._known(first, names)
            raise self._fail(f"unknown variable `{first}`", name.span, hint)
        self._no_more_parts(name, 2)
        return names[first], rest[0]

    def _known(self, name: str, names: dict[str, int]) -> str:
        if (definition := self.scopes.definition(name)) is None:
            return nearest(name, names)
        own = ", ".join(f"`{name}.{variable}`" for variable in self.scopes.of_definition(definition.name))
        return f"`{name}` is a definition; its variables are {own}."

    def _no_more_parts(self, name: s.Name, most: int) -> None:
        if len(name.parts) > most:
            hint = "select the nested field into a column of its own first."
            raise self._fail(f"`{'.'.join(name.parts)}` goes into a nested column", name.span, hint)

    def _objective_of(self, definition: s.Definition, name: str, span: Span) -> s.Objective:
        preference = definition.statement.preference
        named = {o.name: o for o in preference.objectives if o.name} if preference else {}
        if name not in named:
            variables = self.scopes.of_definition(definition.name)
            if name in variables:
                hint = f"an attribute of its variable `{name}` is `{definition.name}.{name}.…`."
                raise self._fail(f"`{definition.name}.{name}` is a variable, not a value", span, hint)
            hint = nearest(name, (*named, *variables))
            raise self._fail(f"`{definition.name}` has no variable or objective `{name}`", span, hint)
        return named[name]

    def _group(self, call: s.Call, names: dict[str, int], definition: str | None) -> b.GroupAggregate:
        argument = call.arguments[0]
        if not isinstance(argument, s.Name):
            message = f"{call.function} takes a Kleene variable's attribute, not an expression"
            raise self._fail(message, argument.span, "e.g. SUM(b.price), COUNT(b).")
        counts = call.function == "COUNT" and len(argument.parts) in (1, 2)
        full = argument
        if counts and not (len(argument.parts) == 2 and argument.parts[0] in names):
            full = s.Name((*argument.parts, "_"), span=argument.span)
        variable, attribute = self._variable_of(full, definition, names)
        if variable is None or isinstance(attribute, s.Objective):
            hint = "it takes the attribute of a Kleene variable."
            raise self._fail(f"{call.function} of an objective", argument.span, hint)
        slot = self.scopes.slots[variable]
        if slot.event.quantifier is None:
            hint = "aggregates are over a Kleene variable (`+`, `*`, `[n]`)."
            raise self._fail(f"{call.function} over `{slot.output_name}`, which binds one event", argument.span, hint)
        if full is not argument:
            return b.GroupAggregate("COUNT", variable, None, b.Kind.INTEGER, call.span)
        column, kind = self.columns.find(attribute, self.text, argument.span)
        return b.GroupAggregate(
            call.function, variable, column, self._aggregate_kind(call.function, kind, argument.span), call.span
        )

    def _aggregate_kind(self, function: str, kind: b.Kind, span: Span) -> b.Kind:
        if function == "COUNT":
            return b.Kind.INTEGER
        if function in ("SUM", "AVG") and kind not in (*b.NUMERIC, b.Kind.NULL, b.Kind.DURATION):
            raise self._fail(f"{function} of {with_article(kind.value)}", span, "it takes numbers.")
        if kind is b.Kind.OTHER and function in ("MIN", "MAX"):
            raise self._fail(f"{function} of {with_article(kind.value)}", span, "it takes values that have an order.")
        return b.Kind.FLOAT if function == "AVG" and kind in b.NUMERIC else kind

    # --- predicates ---
    def _predicates(self) -> Iterator[b.Predicate]:
        for definition in self.scopes.script.definitions:
            variables = self.scopes.operators[id(definition)]
            yield from self._statement_predicates(definition.statement, variables, definition.name)
        everything = [slot.index for slot in self.scopes.slots]
        yield from self._statement_predicates(self.scopes.script.statement, everything, None)

    def _statement_predicates(
        self, statement: s.Statement, variables: list[int], definition: str | None
    ) -> Iterator[b.Predicate]:
        binder = PredicateBinder(self.scopes, self.columns, self._binder(definition))
        for node in statement.pattern.walk():
            for predicate in node.predicates if isinstance(node, s.Seq | s.And | s.Or) else ():
                yield from binder.split(predicate, self.scopes.operators[id(node)])
        if statement.where is not None:
            yield from binder.split(statement.where, variables)
        for name in (*statement.partition_by, *statement.group_by):
            yield from binder.key(name.parts[-1], variables, name.span, f"`{name.parts[-1]}`")

    def _key_columns(self, names: tuple[s.Name, ...], clause: str) -> tuple[str, ...]:
        keys: list[str] = []
        for name in names:
            if len(name.parts) > 1:
                hint = f"{clause} takes a column that all events share: write `{name.parts[-1]}`."
                raise self._fail(f"`{'.'.join(name.parts)}` in {clause}", name.span, hint)
            column, kind = self.columns.find(name.parts[0], self.text, name.span)
            if kind is b.Kind.OTHER:
                hint = "a key is a number, a string, a boolean or a time."
                raise self._fail(f"{clause} {with_article(kind.value)}", name.span, hint)
            if column in keys:
                raise self._fail(f"`{name.parts[0]}` twice in {clause}", name.span, "leave one of them out.")
            keys.append(column)
        return tuple(keys)

    # --- time ---
    def _window(self, window: s.Window | None) -> b.BoundWindow | None:
        return self._length(window.length, "WITHIN", window.exclusive) if window else None

    def _length(self, duration: s.Duration, clause: str, exclusive: bool) -> b.BoundWindow:
        text = print_duration(duration) + (" EXCLUSIVE" if exclusive else "")
        if duration.unit is s.Unit.EVENT:
            if not isinstance(duration.value, int) or duration.value < 1:
                hint = f"e.g. {clause} 20 EVENTS."
                raise self._fail(f"{clause} counts whole events, at least 1", duration.span, hint)
            return b.BoundWindow(b.WindowKind.COUNT, Fraction(duration.value), exclusive, text, duration.span)
        if clause == "UPDATE" and duration.value == 0:
            raise self._fail("UPDATE 0 would never move on", duration.span, "say how far: UPDATE 5 s, UPDATE 100.")
        is_calendar = self.columns.binding.time_kind in (b.TimeKind.TIMESTAMP, b.TimeKind.DATE, b.TimeKind.TEXT)
        if not is_calendar and duration.unit is not s.Unit.NONE:
            binding = self.columns.binding
            kind = with_article(binding.time_kind.value)
            message = f"{clause} {text}, but the time column `{binding.time}` is {kind} without units"
            hint = f"leave the unit out ({clause} {duration.value}), or bind a timestamp column."
            raise self._fail(message, duration.span, hint)
        if exclusive and duration.value == 0:
            raise self._fail("WITHIN 0 EXCLUSIVE leaves no room for a match", duration.span, "leave EXCLUSIVE out.")
        seconds = SECONDS_PER_UNIT.get(duration.unit, Fraction(1))
        return b.BoundWindow(b.WindowKind.TIME, Fraction(duration.value) * seconds, exclusive, text, duration.span)

    # --- output ---
    def _item(self, item: s.ReturnItem) -> b.OutputItem:
        expression = item.expression
        if isinstance(expression, s.Name) and (whole := self._whole_variable(expression)) is not None:
            return b.WholeEvent(whole, item.alias or ".".join(expression.parts), item.span)
        bound = settled(self._binder(None).bind(expression))
        self._check_visible(bound, item.span, "RETURN")
        self._check_no_group(bound, item.span, "RETURN")
        dotted = "_".join(expression.parts) if isinstance(expression, s.Name) else print_expression(expression)
        return b.Computed(bound, item.alias or dotted, item.span)

    def _whole_variable(self, name: s.Name) -> int | None:
        names = self.scopes.of_definition(None)
        variable = names.get(name.parts[0]) if len(name.parts) == 1 else None
        if len(name.parts) == 2 and name.parts[0] not in names and self.scopes.definition(name.parts[0]):
            variable = self.scopes.of_definition(name.parts[0]).get(name.parts[1])
        if variable is None:
            if len(name.parts) == 1:
                raise self._fail(f"unknown variable `{name.parts[0]}`", name.span, self._known(name.parts[0], names))
            return None
        if self.scopes.slots[variable].scope != b.ROOT_SCOPE:
            raise self._fail(self._negated("RETURN", variable), name.span, "no event is bound to it in a match.")
        return variable

    def _negated(self, clause: str, variable: int) -> str:
        slot = self.scopes.slots[variable]
        where = place(self.text, self.scopes.negations[slot.scope].span)
        return f"{clause} of `{slot.output_name}`, which is negated at {where}"

    def _check_visible(self, bound: b.Expr, span: Span, clause: str) -> None:
        for variable in sorted(bound.variables):
            slot = self.scopes.slots[variable]
            if slot.scope != b.ROOT_SCOPE:
                raise self._fail(self._negated(clause, variable), span, "no event is bound to it in a match.")

    def _check_no_group(self, bound: b.Expr, span: Span, clause: str) -> None:
        for column in (part for part in bound.walk() if isinstance(part, b.Column)):
            slot = self.scopes.slots[column.variable]
            if slot.event.quantifier is not None:
                hint = f"take one value: FIRST, LAST, SUM, AVG, MIN or MAX; or RETURN `{slot.output_name}` whole."
                raise self._fail(f"{clause} of one attribute of the group `{slot.output_name}`", span, hint)

    def _aggregate(self, aggregate: s.Aggregate) -> b.AggregateOutput:
        if aggregate.argument is None:
            return b.AggregateOutput("COUNT", None, None, aggregate.alias or "count", aggregate.span)
        bound = self._binder(None).resolve(aggregate.argument)
        if not isinstance(bound, b.Column):
            raise self._fail(f"{aggregate.function} of an objective", aggregate.span, "AGG takes `variable.attribute`.")
        self._check_visible(bound, aggregate.span, "AGG")
        self._aggregate_kind(aggregate.function, bound.kind, aggregate.argument.span)
        name = "_".join([aggregate.function.lower(), *aggregate.argument.parts])
        return b.AggregateOutput(
            aggregate.function, bound.variable, bound.name, aggregate.alias or name, aggregate.span
        )

    def _ranking(self, statement: s.Statement) -> b.Ranking | None:
        of_definitions = [
            (d.name, objective)
            for d in self.scopes.script.definitions
            for objective in (d.statement.preference.objectives if d.statement.preference else ())
        ]
        own = [(None, objective) for objective in (statement.preference.objectives if statement.preference else ())]
        if own:
            # Only those that the statement names are used, but all must make sense.
            for definition, objective in of_definitions:
                self._binder(definition, (objective,)).bind(objective.expression)
        written = own or of_definitions
        if not written:
            return None
        if statement.returns is None or statement.returns.limit is None:
            raise AssertionError("check_clauses asks for k beside PREF")
        objectives = tuple(self._objective(i, o, definition) for i, (definition, o) in enumerate(written, start=1))
        preferences = (
            [statement.preference] if own else [d.statement.preference for d in self.scopes.script.definitions]
        )
        merges = tuple(b.Merge(p.merge or "MIN", len(p.objectives)) for p in preferences if p)
        return b.Ranking(objectives, merges, statement.returns.limit)

    def _objective(self, number: int, objective: s.Objective, definition: str | None) -> b.BoundObjective:
        bound = settled(self._binder(definition, (objective,)).bind(objective.expression))
        if bound.kind not in (*b.NUMERIC, b.Kind.DURATION, b.Kind.NULL):
            message = f"a preference is a number, not {with_article(bound.kind.value)}"
            hint = "rank by a number or a duration, e.g. MIN[b.time - a.time]."
            raise self._fail(message, objective.expression.span, hint)
        self._check_visible(bound, objective.span, "PREF")
        self._check_no_group(bound, objective.span, "PREF")
        own = f"{definition}.{objective.name}" if definition and objective.name else objective.name
        return b.BoundObjective(
            own or f"objective_{number}", objective.maximise, bound, preference_class(bound), objective.span
        )

    def _check_output_names(self, query: b.BoundQuery, for_items: str) -> None:
        given = ["time"] if query.aggregates else ["match_start", "match_end"] if query.show_bounds else []
        if query.ranking:
            given += (["window_end"] if query.update else []) + ["rank", "score"]
        objectives = query.ranking.objectives if query.ranking else ()
        keys = zip(query.group_names, self.scopes.script.statement.group_by, strict=True)
        written = [
            *((key, name.span, "rename the column first.") for key, name in keys),
            *((o.name, o.span, "give it another name in the brackets: MAX[name = …].") for o in objectives),
            *((a.name, a.span, "give it another name with AS.") for a in query.aggregates),
            *((o.name, o.span, for_items) for o in query.output),
        ]
        same = str if self.columns.distinct_case else str.lower
        seen = {same(name): name for name in given}
        for name, span, hint in written:
            if name in given:
                raise self._fail(f"an output column called `{name}` is there already", span, hint)
            other = seen.get(same(name))
            if other == name:
                raise self._fail(f"two output columns are called `{name}`", span, hint)
            if other is not None:
                raise self._fail(f"Spark cannot tell the output columns `{other}` and `{name}` apart", span, hint)
            seen[same(name)] = name

    def _check_whole_events(self, query: b.BoundQuery) -> None:
        names = query.schema.names
        twice = next((name for name in names if names.count(name) > 1), None)
        whole = next((item for item in query.output if isinstance(item, b.WholeEvent)), None)
        if twice is not None and whole is not None:
            hint = "rename one of them, or RETURN other columns only."
            raise self._fail(f"two columns of the events are called `{twice}`", whole.span, hint)
