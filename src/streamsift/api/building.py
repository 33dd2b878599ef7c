"""Build queries in Python: each method adds the clause that the text would have."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Self

from streamsift.errors import QueryError
from streamsift.language import Script, parse_clauses, parse_expression, print_pattern
from streamsift.language import syntax as s

_ANY = s.Event("ANY", any_row=True)


@dataclass(frozen=True)
class Buildable:
    """A script whose methods return a new one, with one more clause or as part of a larger pattern."""

    script: Script

    def where(self, predicate: str) -> Self:
        """Add a WHERE predicate. Several calls are joined by AND.

        Args:
            predicate: Predicate over the variables of the pattern; `[id]` requires equal `id` in all events.

        Returns:
            A new query.

        Example:
            >>> import streamsift as ss
            >>> print(ss.query("SEQ(A a, B b)").where("[id]").where("a.x > 3"))
            PATTERN SEQ(A a, B b) WHERE [id] AND a.x > 3
        """
        return self._with(f"WHERE {predicate}")

    def within(self, length: str | float, *, exclusive: bool = False) -> Self:
        """Add a window (WITHIN): the events of a match fit into it.

        Args:
            length: Duration ("10 s"), number of events ("100 events"), or a number in the units of the time column.
            exclusive: Exclude matches that are exactly as long as the window. Default: False.

        Returns:
            A new query.

        Example:
            >>> import streamsift as ss
            >>> print(ss.query("SEQ(A a, B b)").within("10 s", exclusive=True))
            PATTERN SEQ(A a, B b) WITHIN 10 s EXCLUSIVE
        """
        return self._with(f"WITHIN {length}" + " EXCLUSIVE" * exclusive)

    def partition_by(self, *attributes: str) -> Self:
        """Add PARTITION BY: all events of a match have equal values in these columns.

        Args:
            *attributes: Column names.

        Returns:
            A new query.

        Example:
            >>> import streamsift as ss
            >>> print(ss.query("SEQ(A a, B b)").partition_by("symbol"))
            PATTERN SEQ(A a, B b) PARTITION BY symbol
        """
        return self._with(f"PARTITION BY {', '.join(attributes)}")

    def group_by(self, *attributes: str) -> Self:
        """Add GROUP BY: compute the aggregates or the ranking for each value of these columns.

        Args:
            *attributes: Column names.

        Returns:
            A new query.

        Example:
            >>> import streamsift as ss
            >>> print(ss.query("SEQ(A a, B b)").group_by("id").agg("COUNT"))
            PATTERN SEQ(A a, B b) GROUP BY id AGG COUNT
        """
        return self._with(f"GROUP BY {', '.join(attributes)}")

    def agg(self, *aggregates: str) -> Self:
        """Add AGG: return aggregates over all matches instead of the matches.

        Args:
            *aggregates: COUNT, or SUM, AVG, MIN or MAX of a column of a variable, with an optional name.

        Returns:
            A new query.

        Example:
            >>> import streamsift as ss
            >>> print(ss.query("SEQ(A a, B b)").agg("COUNT", "AVG(b.x) AS mean"))
            PATTERN SEQ(A a, B b) AGG COUNT, AVG(b.x) AS mean
        """
        return self._with(f"AGG {', '.join(aggregates)}")

    def prefer(self, *objectives: str, merge: str | None = None) -> Self:
        """Add PREF: rank matches by one or more objectives. Set the number of matches with `returns(top=k)`.

        Args:
            *objectives: `MAX[expression]` or `MIN[expression]`; `MAX[name = expression]` names the output column.
            merge: How several objectives become one score: "SUM", "AVG", "MIN", "MAX" or "PRODUCT". Default: "MIN".

        Returns:
            A new query.

        Example:
            >>> import streamsift as ss
            >>> print(ss.query("SEQ(A a, B b)").prefer("MAX[a.x + b.x]").returns(top=10))
            PATTERN SEQ(A a, B b) PREF MAX[a.x + b.x] RETURN 10
        """
        return self._with(f"PREF {' AND '.join(objectives)}" + (f" MERGE {merge}" if merge else ""))

    def update(self, length: str | float) -> Self:
        """Add UPDATE: compute the aggregates or the ranking at every multiple of a step.

        Args:
            length: Duration ("1 min"), number of events ("10 events"), or a number in the units of the time column.

        Returns:
            A new query.

        Example:
            >>> import streamsift as ss
            >>> print(ss.query("SEQ(A a, B b)").agg("COUNT").within("1 hour").update("10 min"))
            PATTERN SEQ(A a, B b) AGG COUNT WITHIN 1 h UPDATE 10 min
        """
        return self._with(f"UPDATE {length}")

    def emit(self, mode: str) -> Self:
        """Add EMIT: choose when rows are emitted.

        Args:
            mode: "FINAL": maximal Kleene groups only (the default of the language). "EACH": a trailing Kleene group at
                each of its sizes. "CHANGES": aggregates also when they change without a new match.

        Returns:
            A new query.

        Example:
            >>> import streamsift as ss
            >>> print(ss.query("SEQ(A a, B b)").agg("COUNT").within(5).emit("CHANGES"))
            PATTERN SEQ(A a, B b) AGG COUNT WITHIN 5 EMIT CHANGES
        """
        return self._with(f"EMIT {mode}")

    def returns(self, *items: str, top: int | None = None) -> Self:
        """Add RETURN: choose the output columns and, with `prefer`, the number of matches.

        Args:
            *items: Variables or expressions, with optional names ("a.x + b.x AS total").
            top: Number of matches to return, for `prefer`. Default: none.

        Returns:
            A new query.

        Example:
            >>> import streamsift as ss
            >>> print(ss.query("SEQ(A a, B b)").returns("a", "b.x AS x"))
            PATTERN SEQ(A a, B b) RETURN a, b.x AS x
        """
        limit = [] if top is None else [f"TOP {top}"]
        return self._with(" ".join(["RETURN", *limit, ", ".join(items)]))

    def classes(self, **predicates: str) -> Self:
        """Add WITH: define event classes by predicates over a row.

        Args:
            **predicates: Predicate of each class, by class name.

        Returns:
            A new query.

        Example:
            >>> import streamsift as ss
            >>> print(ss.query("SEQ(Big a, Big b)").classes(Big="amount > 1000"))
            PATTERN SEQ(Big a, Big b) WITH Big = (amount > 1000)
        """
        return self._with("WITH " + ", ".join(f"`{name}` = ({predicate})" for name, predicate in predicates.items()))

    def define(self, name: str, definition: Buildable) -> Self:
        """Define a named sub-pattern, which the pattern uses as `event(name)`.

        Args:
            name: Name of the sub-pattern.
            definition: Query whose pattern and clauses define it.

        Returns:
            A new query.

        Raises:
            QueryError: The definition has definitions of its own.

        Example:
            >>> import streamsift as ss
            >>> pair = ss.query("SEQ(A a, B b) WITHIN 3")
            >>> print(ss.seq(ss.event("Pair"), ss.event("C", "c")).define("Pair", pair))
            SEQ Pair = SEQ(A a, B b) WITHIN 3
            PATTERN SEQ(Pair, C c)
        """
        if definition.script.definitions:
            raise QueryError(
                f"the definition `{name}` contains definitions", hint="define all sub-patterns in one query."
            )
        definitions = (*self.script.definitions, s.Definition(name, definition.script.statement))
        return type(self)(replace(self.script, definitions=definitions, text=""))

    def one_or_more(self) -> Self:
        """Make the event a Kleene group of one or more events: `A+`.

        Returns:
            A new query.

        Raises:
            QueryError: The pattern is not a single event without a quantifier.

        Example:
            >>> import streamsift as ss
            >>> print(ss.event("A", "a").one_or_more())
            PATTERN A+ a
        """
        return self._repeated(s.Repeat.ONE_OR_MORE)

    def any_number(self) -> Self:
        """Make the event a Kleene group of zero or more events: `A*`.

        Returns:
            A new query.

        Raises:
            QueryError: The pattern is not a single event without a quantifier.

        Example:
            >>> import streamsift as ss
            >>> print(ss.seq(ss.event("A", "a").any_number(), ss.event("B", "b")))
            PATTERN SEQ(A* a, B b)
        """
        return self._repeated(s.Repeat.ANY_NUMBER)

    def exactly(self, count: int) -> Self:
        """Make the event a Kleene group of a fixed size: `A[n]`, every choice of n events.

        Args:
            count: Number of events, at least 1.

        Returns:
            A new query.

        Raises:
            QueryError: The pattern is not a single event without a quantifier, or `count` is less than 1.

        Example:
            >>> import streamsift as ss
            >>> print(ss.event("A", "a").exactly(3))
            PATTERN A[3] a
        """
        return self._repeated(s.Repeat.EXACTLY, count)

    def next(self) -> Self:
        """Bind the next event of the class after the event before it: `NEXT A`.

        Returns:
            A new query.

        Raises:
            QueryError: The pattern is not a single event class.

        Example:
            >>> import streamsift as ss
            >>> print(ss.seq(ss.event("A", "a"), ss.event("B", "b").next()))
            PATTERN SEQ(A a, NEXT B b)
        """
        return self._nearest(s.Nearest.NEXT)

    def latest(self) -> Self:
        """Bind the latest event of the class before the event after it: `LATEST A`.

        Returns:
            A new query.

        Raises:
            QueryError: The pattern is not a single event class.

        Example:
            >>> import streamsift as ss
            >>> print(ss.seq(ss.event("A", "a").latest(), ss.event("B", "b")))
            PATTERN SEQ(LATEST A a, B b)
        """
        return self._nearest(s.Nearest.LATEST)

    def until(self, event: str) -> Self:
        """Add UNTIL: no event of this class lies between the first and the last event of a match.

        Args:
            event: Class, with a variable for predicates if needed.

        Returns:
            A new query.

        Example:
            >>> import streamsift as ss
            >>> print(ss.query("SEQ(A a, B b)").until("Stop s"))
            PATTERN SEQ(A a, B b) UNTIL Stop s
        """
        return self._with(f"UNTIL {event}")

    def __invert__(self) -> Self:
        return self._of(s.Not(self._pattern))

    def __and__(self, other: Buildable) -> Self:
        return self._combined(s.And, self, other)

    def __or__(self, other: Buildable) -> Self:
        return self._combined(s.Or, self, other)

    def __rshift__(self, other: Buildable) -> Self:
        return self._combined(s.Seq, self, other)

    def _with(self, clause: str) -> Self:
        """Add a clause, given as text; a second WHERE is joined to the first by AND."""
        fields, statement = parse_clauses(clause), self.script.statement
        if "where" in fields and statement.where is not None:
            fields["where"] = s.AllOf((*_conjuncts(statement.where), *_conjuncts(fields["where"])))
        elif "classes" in fields:
            fields["classes"] = (*statement.classes, *fields["classes"])
        elif any(getattr(statement, name) not in (None, ()) for name in fields):
            raise QueryError(f"the query already has this clause: `{clause}`", hint="remove one of the two.")
        return type(self)(replace(self.script, statement=replace(statement, **fields), text=""))

    def _repeated(self, repeat: s.Repeat, count: int | None = None) -> Self:
        pattern = self._pattern
        if not isinstance(pattern, s.Event):
            hint = "apply `+`, `*` and `[n]` to a single event class."
            raise QueryError(f"a quantifier cannot apply to `{print_pattern(pattern)}`", hint=hint)
        if pattern.quantifier is not None:
            raise QueryError(f"`{print_pattern(pattern)}` already has a quantifier", hint="remove one of the two.")
        if repeat is s.Repeat.EXACTLY and (count is None or count < 1):
            raise QueryError(f"invalid quantifier: [{count}]", hint="use an integer of at least 1.")
        return self._of(replace(pattern, quantifier=s.Quantifier(repeat, count)))

    def _nearest(self, nearest: s.Nearest) -> Self:
        pattern = self._pattern
        if not isinstance(pattern, s.Event):
            hint = f"apply {nearest.value} to a single event class."
            raise QueryError(f"{nearest.value} cannot apply to `{print_pattern(pattern)}`", hint=hint)
        return self._of(replace(pattern, nearest=nearest))

    @property
    def _pattern(self) -> s.Pattern:
        """Return the pattern; raise if there are clauses, since only a bare pattern can become part of another."""
        if self.script.definitions or replace(self.script.statement, pattern=_ANY) != s.Statement(_ANY):
            hint = "build the whole pattern first, then add where(), within() and other clauses."
            raise QueryError("a query with clauses cannot become part of a pattern", hint=hint)
        return self.script.statement.pattern

    @classmethod
    def _combined(cls, operator: type[s.Seq | s.And | s.Or], *operands: Buildable | str) -> Self:
        """Return SEQ, AND or OR; queries are its operands, strings its predicates."""
        patterns = tuple(operand._pattern for operand in operands if not isinstance(operand, str))
        predicates = tuple(parse_expression(operand) for operand in operands if isinstance(operand, str))
        if not patterns:
            hint = 'pass patterns, for example ss.event("A", "a").'
            raise QueryError(f"{operator.__name__.upper()} has no pattern", hint=hint)
        return cls._of(operator(patterns, predicates))

    @classmethod
    def _of(cls, pattern: s.Pattern) -> Self:
        return cls(Script((), s.Statement(pattern)))


def _conjuncts(expression: s.Expression) -> tuple[s.Expression, ...]:
    return expression.operands if isinstance(expression, s.AllOf) else (expression,)
