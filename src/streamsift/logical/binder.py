"""Bind a script to a schema; raise QueryError if it is invalid."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, fields
from datetime import UTC, tzinfo
from fractions import Fraction

import pyarrow as pa

from streamsift.errors import QueryError, Span, nearest, place, with_article
from streamsift.language import syntax as s
from streamsift.language.printer import print_duration, print_expression
from streamsift.language.tree import aggregate_rows_hint
from streamsift.logical import bound as b
from streamsift.logical.columns import UNKNOWN_COLUMNS, EventColumns, bind_columns
from streamsift.logical.expressions import SECONDS_PER_UNIT, ExpressionBinder, settled
from streamsift.logical.predicates import PredicateBinder
from streamsift.logical.preferences import preference_class
from streamsift.logical.scopes import Scopes, Slot, resolve_scopes


def sketch(script: s.Script, columns: EventColumns = UNKNOWN_COLUMNS) -> b.BoundQuery:
    """Bind a query as far as possible without a schema: good enough for charts, not for plans.

    This makes all checks that need no schema: structure, clause combinations, names of variables and outputs, literals.
    """
    return _bound(resolve_scopes(script), columns)


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
    """Bind the script to events of this schema.

    `zone` applies to timestamp literals without a time zone. With `distinct_case`, names of output columns may differ
    only by case.
    """
    scopes = resolve_scopes(script)
    binding = bind_columns(schema, time, type, order, case_sensitive)
    return _bound(scopes, EventColumns(schema, binding, case_sensitive, zone, distinct_case))


def _bound(scopes: Scopes, columns: EventColumns) -> b.BoundQuery:
    try:
        return _Binder(scopes, columns).query()
    except RecursionError:
        raise QueryError(
            "the query is nested too deeply", hint="remove redundant brackets, or split the query."
        ) from None


_Operator = b.Sequence | b.Conjunction | b.Disjunction
_OPERATORS: dict[type[s.Pattern], type[_Operator]] = {s.Seq: b.Sequence, s.And: b.Conjunction, s.Or: b.Disjunction}
_SUMMABLE = b.NUMERIC | {b.Kind.NULL, b.Kind.DURATION}
_RENAME = "rename it with AS."
_RENAME_VARIABLE = "rename the variable, or rename the column with RETURN … AS."


def _names_in(node: s.Written) -> Iterator[s.Name]:
    if isinstance(node, s.Name):
        yield node
    for value in (getattr(node, each.name) for each in fields(node)):
        for inner in value if isinstance(value, tuple) else (value,):
            if isinstance(inner, s.Written):
                yield from _names_in(inner)


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
        whole = tuple(b.WholeEvent(v.index, v.name, span=v.span) for v in variables if v.positive)
        query = b.BoundQuery(  # the order decides which of several errors is raised
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
        self._check_output_names(query, _RENAME if items else _RENAME_VARIABLE)
        self._check_whole_events(query)
        return query

    # --- classes and pattern ---
    def _variables(self) -> tuple[b.Variable, ...]:
        binder = self._row_binder()
        # Classes that no variable uses are checked too.
        classes = {
            (owner, each.name): settled(binder.predicate(each.predicate))
            for owner, statement in self.scopes.script.statements
            for each in statement.classes
        }

        def event_class(slot: Slot) -> b.EventClass:
            name = slot.event.class_name
            predicate = classes.get((slot.definition, name), classes.get((None, name)))
            if predicate is not None:
                return b.EventClass(name, b.ClassRule.WITH, predicate)
            if slot.event.any_row:
                return b.EventClass("ANY", b.ClassRule.ANY)
            return b.EventClass(name, b.ClassRule.TYPE if self.columns.binding.type else b.ClassRule.ALL)

        return tuple(
            b.Variable(n, slot.output_name, event_class(slot), slot.event.quantifier, slot.scope, span=slot.event.span)
            for n, slot in enumerate(self.scopes.slots)
        )

    def _row_binder(self) -> ExpressionBinder:
        def resolve(name: s.Name) -> b.Expr:
            if len(name.parts) > 1:
                hint = f"write the column without a variable: `{name.parts[-1]}`."
                raise self._fail(
                    f"WITH describes single rows and cannot use the variable `{name.parts[0]}`", name.span, hint
                )
            return self._column(b.THIS_ROW, name.parts[0], name.span)

        def group(call: s.Call) -> b.GroupAggregate:
            hint = "compare columns of a single row in WITH, and aggregate in WHERE."
            raise self._fail(f"WITH cannot use the aggregate {call.function}", call.span, hint)

        return ExpressionBinder(self._fail, resolve, group, self.columns)

    def _column(self, variable: int, attribute: str, span: Span) -> b.Column:
        return b.Column(variable, *self.columns.find(attribute, self.text, span), span=span)

    def _node(self, pattern: s.Pattern) -> b.Node:
        match pattern:
            case s.Event():
                if (definition := self.scopes.use(pattern)) is None:
                    return b.Leaf(self.scopes.variables[id(pattern)][0], span=pattern.span)
                statement = definition.statement
                window, child = self._window(statement.window), self._node(statement.pattern)
                keys = self._key_columns(statement.partition_by, "PARTITION BY")
                return b.SubPattern(child, definition.name, window, keys, span=pattern.span)
            case s.Not():
                scope = next(scope for scope, negation in self.scopes.negations.items() if negation is pattern)
                return b.Negated(self._node(pattern.operand), scope, span=pattern.span)
            case s.Seq() | s.And() | s.Or():
                return _OPERATORS[type(pattern)](tuple(map(self._node, pattern.operands)), span=pattern.span)

    # --- names ---
    def _binder(self, definition: str | None, inside: tuple[s.Objective, ...] = ()) -> ExpressionBinder:
        """Return the binder for expressions of the statement (None), or of a definition, which names its own variables.

        `inside` holds the objectives whose expressions are being bound, to detect cycles.
        """
        names = {**self.scopes.of_definition(None), **self.scopes.of_definition(definition)}

        def resolve(name: s.Name) -> b.Expr:
            variable = self._variable_of(name, names)
            if variable is not None:
                return self._column(variable, name.parts[-1], name.span)
            objective = self._objective_of(name)
            if any(objective is outer for outer in inside):
                hint = "define it over attributes of variables."
                raise self._fail(f"the objective `{'.'.join(name.parts)}` refers to itself", name.span, hint)
            return self._binder(name.parts[0], (*inside, objective)).bind(objective.expression)

        return ExpressionBinder(self._fail, resolve, lambda call: self._group(call, names), self.columns)

    def _variable_of(self, name: s.Name, names: dict[str, int]) -> int | None:
        """Return the variable that a name is an attribute of; None for `S1.name`, an objective of S1."""
        first, *rest = name.parts
        if not rest:
            if first in names:
                message, hint = "is a variable, not a value", f"name an attribute: `{first}.column`."
            else:
                message, hint = "needs a variable", f"write `{next(iter(names), 'variable')}.{first}`, for example."
            raise self._fail(f"`{first}` {message}", name.span, hint)
        if first in names:
            variable, most = names[first], 2
        elif self.scopes.definition(first) is not None:
            if len(rest) == 1:
                return None
            variables = self.scopes.of_definition(first)
            if rest[0] not in variables:
                raise self._fail(f"`{first}` has no variable `{rest[0]}`", name.span, nearest(rest[0], variables))
            variable, most = variables[rest[0]], 3
        else:
            qualified = [slot.output_name for slot in self.scopes.slots if slot.definition and slot.name == first]
            hint = f"outside its definition, write `{min(qualified)}`." if qualified else nearest(first, names)
            raise self._fail(f"unknown variable `{first}`", name.span, hint)
        if len(name.parts) > most:
            hint = "select the nested field into its own column first."
            raise self._fail(f"`{'.'.join(name.parts)}` refers to a nested field", name.span, hint)
        return variable

    def _objective_of(self, name: s.Name) -> s.Objective:
        of, part = name.parts
        definition = self.scopes.definition(of)
        preference = definition.statement.preference if definition else None
        named = {o.name: o for o in preference.objectives if o.name} if preference else {}
        if part in named:
            return named[part]
        variables = self.scopes.of_definition(of)
        if part in variables:
            hint = f"name an attribute: `{of}.{part}.column`."
            raise self._fail(f"`{of}.{part}` is a variable, not a value", name.span, hint)
        hint = nearest(part, (*named, *variables))
        raise self._fail(f"`{of}` has no variable or objective `{part}`", name.span, hint)

    def _group(self, call: s.Call, names: dict[str, int]) -> b.GroupAggregate:
        argument = call.arguments[0]
        if not isinstance(argument, s.Name):
            message = f"{call.function} takes one attribute of a Kleene variable, not an expression"
            raise self._fail(message, argument.span, self._group_hint(call, names))
        parts = argument.parts
        counts = call.function == "COUNT" and len(parts) <= 2 and not (len(parts) == 2 and parts[0] in names)
        variable = self._variable_of(s.Name((*parts, "_"), span=argument.span) if counts else argument, names)
        if variable is None:
            self._objective_of(argument)
            hint = "use an attribute of a Kleene variable."
            raise self._fail(f"{call.function} cannot aggregate an objective", argument.span, hint)
        slot = self.scopes.slots[variable]
        if slot.event.quantifier is None:
            message = f"{call.function} requires a Kleene variable, but `{slot.output_name}` binds a single event"
            hint = "remove the aggregate, or add a quantifier (`+`, `*` or `[n]`) to the class."
            raise self._fail(message, argument.span, hint)
        if counts:
            return b.GroupAggregate("COUNT", variable, None, b.Kind.INTEGER, span=call.span)
        column = self._column(variable, parts[-1], argument.span)
        kind = self._aggregate_kind(call.function, column.kind, argument.span)
        return b.GroupAggregate(call.function, variable, column.name, kind, span=call.span)

    def _group_hint(self, call: s.Call, names: dict[str, int]) -> str:
        """Return the hint for an aggregate whose argument is an expression."""
        for name in _names_in(call.arguments[0]):
            variable = names.get(name.parts[0]) if len(name.parts) == 2 else None
            if variable is not None and self.scopes.slots[variable].event.quantifier is not None:
                return f"aggregate one attribute and compute with the result, such as {self._example(call, name)}."
        return aggregate_rows_hint(call.arguments[0])

    def _example(self, call: s.Call, name: s.Name) -> str:
        """Return an aggregate of one attribute; times have no sum."""
        _, kind = self.columns.find(name.parts[1], self.text, name.span)
        aggregate, last = (f"{function}({'.'.join(name.parts)})" for function in (call.function, "LAST"))
        if call.function not in ("SUM", "AVG") or kind in b.NUMERIC:
            return aggregate
        return f"{aggregate} for numbers or {last}" if kind is b.Kind.NULL else last

    def _aggregate_kind(self, function: str, kind: b.Kind, span: Span) -> b.Kind:
        if function == "COUNT":
            return b.Kind.INTEGER
        if function in ("SUM", "AVG") and kind not in _SUMMABLE:
            hint = "use a column of numbers or durations."
            raise self._fail(f"{function} requires a number, not {with_article(kind.value)}", span, hint)
        if kind is b.Kind.OTHER and function in ("MIN", "MAX"):
            hint = "use a column of numbers, strings, booleans or times."
            raise self._fail(f"{function} cannot order {with_article(kind.value)}", span, hint)
        return b.Kind.FLOAT if function == "AVG" and kind in b.NUMERIC else kind

    # --- predicates ---
    def _predicates(self) -> Iterator[b.Predicate]:
        for definition, statement in self.scopes.script.statements:
            binder = PredicateBinder(self.scopes, self.columns, self._binder(definition))
            variables = self.scopes.variables[id(statement)]
            for node in statement.pattern.walk():
                for predicate in node.predicates if isinstance(node, s.Seq | s.And | s.Or) else ():
                    yield from binder.split(predicate, self.scopes.variables[id(node)])
            if statement.where is not None:
                yield from binder.split(statement.where, variables)
            for name in (*statement.partition_by, *statement.group_by):
                yield from binder.key(name.parts[-1], variables, name.span, f"`{name.parts[-1]}`")

    def _key_columns(self, names: tuple[s.Name, ...], clause: str) -> tuple[str, ...]:
        keys: list[str] = []
        for name in names:
            if len(name.parts) > 1:
                hint = f"write the column without a variable: `{name.parts[-1]}`."
                raise self._fail(f"{clause} applies to all variables, not only to `{name.parts[0]}`", name.span, hint)
            column, kind = self.columns.find(name.parts[0], self.text, name.span)
            if kind is b.Kind.OTHER:
                hint = "use a column of numbers, strings, booleans or times."
                raise self._fail(f"{clause} cannot use {with_article(kind.value)}", name.span, hint)
            if column in keys:
                raise self._fail(f"{clause} names `{name.parts[0]}` twice", name.span, "remove one of them.")
            keys.append(column)
        return tuple(keys)

    # --- time ---
    def _window(self, window: s.Window | None) -> b.BoundWindow | None:
        return self._length(window.length, "WITHIN", window.exclusive) if window else None

    def _length(self, duration: s.Duration, clause: str, exclusive: bool) -> b.BoundWindow:
        text = print_duration(duration) + (" EXCLUSIVE" if exclusive else "")
        if duration.unit is s.Unit.EVENT:
            if not isinstance(duration.value, int) or duration.value < 1:
                hint = f"write {clause} 20 EVENTS, for example."
                raise self._fail(f"{clause} requires a positive number of events", duration.span, hint)
            return b.BoundWindow(b.WindowKind.COUNT, Fraction(duration.value), exclusive, text, span=duration.span)
        if clause == "UPDATE" and duration.value == 0:
            hint = "write UPDATE 5 s or UPDATE 100, for example."
            raise self._fail("UPDATE requires a positive length", duration.span, hint)
        binding = self.columns.binding
        is_calendar = binding.time_kind in (b.TimeKind.TIMESTAMP, b.TimeKind.DATE, b.TimeKind.TEXT)
        if not is_calendar and duration.unit is not s.Unit.NONE:
            kind = with_article(binding.time_kind.value)
            message = f"{clause} {text} has a unit, but the time column `{binding.time}` is {kind}"
            hint = f"remove the unit ({clause} {duration.value}), or use a timestamp column as time."
            raise self._fail(message, duration.span, hint)
        if exclusive and duration.value == 0:
            raise self._fail("WITHIN 0 EXCLUSIVE excludes all matches", duration.span, "remove EXCLUSIVE.")
        length = Fraction(duration.value) * SECONDS_PER_UNIT.get(duration.unit, Fraction(1))
        return b.BoundWindow(b.WindowKind.TIME, length, exclusive, text, span=duration.span)

    # --- output ---
    def _item(self, item: s.ReturnItem) -> b.OutputItem:
        expression = item.expression
        if isinstance(expression, s.Name) and (whole := self._whole_variable(expression)) is not None:
            self._check_positive([whole], expression.span, "RETURN")
            return b.WholeEvent(whole, item.alias or ".".join(expression.parts), span=item.span)
        bound = settled(self._binder(None).bind(expression))
        self._check_positive(bound.variables, item.span, "RETURN")
        self._check_no_group(bound, item.span, "RETURN")
        name = "_".join(expression.parts) if isinstance(expression, s.Name) else print_expression(expression)
        return b.Computed(bound, item.alias or name, span=item.span)

    def _whole_variable(self, name: s.Name) -> int | None:
        first, *rest = name.parts
        names = self.scopes.of_definition(None)
        if len(rest) == 1 and first not in names:
            return self.scopes.of_definition(first).get(rest[0])
        if rest or first in names:
            return None if rest else names[first]
        hint = nearest(first, names)
        if self.scopes.definition(first) is not None:
            variables = ", ".join(f"`{first}.{variable}`" for variable in self.scopes.of_definition(first))
            hint = f"use a variable of the definition: {variables}."
        raise self._fail(f"unknown variable `{first}`", name.span, hint)

    def _check_positive(self, variables: Iterable[int], span: Span, clause: str) -> None:
        for slot in (self.scopes.slots[variable] for variable in sorted(variables)):
            if slot.scope != b.ROOT_SCOPE:
                where = place(self.text, self.scopes.negations[slot.scope].span)
                message = f"{clause} cannot use `{slot.output_name}`, which is negated at {where}"
                raise self._fail(message, span, "use a variable that is not negated: a match binds no negated events.")

    def _check_no_group(self, bound: b.Expr, span: Span, clause: str) -> None:
        for column in (part for part in bound.walk() if isinstance(part, b.Column)):
            slot = self.scopes.slots[column.variable]
            if slot.event.quantifier is not None:
                message = f"{clause} requires one value, but `{slot.output_name}` binds a group of events"
                whole = f", or return the group `{slot.output_name}`" if clause == "RETURN" else ""
                raise self._fail(message, span, f"use FIRST, LAST, SUM, AVG, MIN or MAX{whole}.")

    def _aggregate(self, aggregate: s.Aggregate) -> b.AggregateOutput:
        function, argument, span = aggregate.function, aggregate.argument, aggregate.span
        if argument is None:
            return b.AggregateOutput("COUNT", None, None, aggregate.alias or "count", span=span)
        bound = self._binder(None).resolve(argument)
        if not isinstance(bound, b.Column):
            raise self._fail(f"{function} cannot aggregate an objective", span, "use `variable.attribute`.")
        self._check_positive([bound.variable], span, "AGG")
        self._aggregate_kind(function, bound.kind, argument.span)
        name = "_".join([function.lower(), *argument.parts])
        return b.AggregateOutput(function, bound.variable, bound.name, aggregate.alias or name, span=span)

    def _ranking(self, statement: s.Statement) -> b.Ranking | None:
        preferences = [(name, each.preference) for name, each in self.scopes.script.statements if each.preference]
        if statement.preference:
            # The statement uses only those that it names; the others are checked too.
            for name, preference in preferences[:-1]:
                for objective in preference.objectives:
                    self._binder(name, (objective,)).bind(objective.expression)
            preferences = preferences[-1:]
        if not preferences:
            return None
        assert statement.returns is not None
        assert statement.returns.limit is not None
        written = [(name, objective) for name, preference in preferences for objective in preference.objectives]
        objectives = tuple(self._objective(number, *each) for number, each in enumerate(written, start=1))
        merges = tuple(b.Merge(preference.merge or "MIN", len(preference.objectives)) for _, preference in preferences)
        return b.Ranking(objectives, merges, statement.returns.limit)

    def _objective(self, number: int, definition: str | None, objective: s.Objective) -> b.BoundObjective:
        bound = settled(self._binder(definition, (objective,)).bind(objective.expression))
        if bound.kind not in _SUMMABLE:
            message = f"PREF requires a number or a duration, not {with_article(bound.kind.value)}"
            hint = "rank by a numeric column or by a duration, such as MIN[b.time - a.time]."
            raise self._fail(message, objective.expression.span, hint)
        self._check_positive(bound.variables, objective.span, "PREF")
        self._check_no_group(bound, objective.span, "PREF")
        name = f"{definition}.{objective.name}" if definition and objective.name else objective.name
        rank_by = preference_class(bound)
        return b.BoundObjective(name or f"objective_{number}", objective.maximise, bound, rank_by, span=objective.span)

    def _check_output_names(self, query: b.BoundQuery, for_items: str) -> None:
        given = ["time"] if query.aggregates else ["match_start", "match_end"] if query.show_bounds else []
        if query.ranking:
            given += (["window_end"] if query.update else []) + ["rank", "score"]
        objectives = query.ranking.objectives if query.ranking else ()
        keys = zip(query.group_names, self.scopes.script.statement.group_by, strict=True)
        written = [
            *((key, name.span, "rename the column in the input.") for key, name in keys),
            *((o.name, o.span, "rename the objective: MAX[name = …].") for o in objectives),
            *((a.name, a.span, _RENAME) for a in query.aggregates),
            *((o.name, o.span, for_items) for o in query.output),
        ]
        same = str if self.columns.distinct_case else str.lower
        seen = {same(name): name for name in given}
        for name, span, hint in written:
            if name in given:
                raise self._fail(f"the output already has a column `{name}`", span, hint)
            other = seen.get(same(name))
            if other == name:
                raise self._fail(f"two output columns are named `{name}`", span, hint)
            if other is not None:
                raise self._fail(f"Spark cannot distinguish the output columns `{other}` and `{name}`", span, hint)
            seen[same(name)] = name

    def _check_whole_events(self, query: b.BoundQuery) -> None:
        names = query.schema.names
        twice = next((name for name in names if names.count(name) > 1), None)
        whole = next((item for item in query.output if isinstance(item, b.WholeEvent)), None)
        if twice is not None and whole is not None:
            hint = "rename one of them, or list other columns in RETURN."
            raise self._fail(f"the input has two columns named `{twice}`", whole.span, hint)
