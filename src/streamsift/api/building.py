"""Build queries by Python calls: a call adds the clause that the text would have."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Self

from streamsift.errors import QueryError
from streamsift.language import Script, parse_clauses, parse_expression, print_pattern
from streamsift.language import syntax as s

_ANY = s.Event("ANY", any_row=True)


@dataclass(frozen=True)
class Buildable:
    """A script. Every method returns a new one with one more clause, or as part of a larger pattern."""

    script: Script

    def where(self, predicate: str) -> Self:
        """Keep only matches that satisfy the predicate; several are joined by AND.

        >>> import streamsift as ss
        >>> print(ss.query("SEQ(A a, B b)").where("[id]").where("a.x > 3"))
        PATTERN SEQ(A a, B b) WHERE [id] AND a.x > 3
        """
        return self._with(f"WHERE {predicate}")

    def within(self, length: str | float, *, exclusive: bool = False) -> Self:
        """Keep only matches that fit into a window: `within("10 s")`, `within("100 events")`, `within(500)`."""
        return self._with(f"WITHIN {length}" + " EXCLUSIVE" * exclusive)

    def partition_by(self, *attributes: str) -> Self:
        """Make all events of a match share these columns."""
        return self._with(f"PARTITION BY {', '.join(attributes)}")

    def group_by(self, *attributes: str) -> Self:
        """Return a result of `agg` or `prefer` for each value of these columns."""
        return self._with(f"GROUP BY {', '.join(attributes)}")

    def agg(self, *aggregates: str) -> Self:
        """Return aggregates instead of matches.

        >>> import streamsift as ss
        >>> print(ss.query("SEQ(A a, B b)").group_by("id").agg("COUNT", "AVG(b.x) AS mean"))
        PATTERN SEQ(A a, B b) GROUP BY id AGG COUNT, AVG(b.x) AS mean
        """
        return self._with(f"AGG {', '.join(aggregates)}")

    def prefer(self, *objectives: str, merge: str | None = None) -> Self:
        """Say what makes a match good: `prefer("MAX[a.x + b.x]", "MIN[b.t - a.t]")`."""
        return self._with(f"PREF {' AND '.join(objectives)}" + (f" MERGE {merge}" if merge else ""))

    def update(self, length: str | float) -> Self:
        """Return results of `agg` or `prefer` at every multiple of a step: `update("1 min")`."""
        return self._with(f"UPDATE {length}")

    def emit(self, mode: str) -> Self:
        """Choose when rows are emitted: "FINAL", "EACH" for growing groups, "CHANGES" for aggregates."""
        return self._with(f"EMIT {mode}")

    def returns(self, *items: str, top: int | None = None) -> Self:
        """Choose the output columns, and with `prefer` how many matches: `returns(top=10)`."""
        limit = [] if top is None else [f"TOP {top}"]
        return self._with(" ".join(["RETURN", *limit, ", ".join(items)]))

    def classes(self, **predicates: str) -> Self:
        """Define event classes by a predicate over a row: `classes(Big="amount > 1000")`."""
        return self._with("WITH " + ", ".join(f"`{name}` = ({predicate})" for name, predicate in predicates.items()))

    def define(self, name: str, definition: Buildable) -> Self:
        """Name a sub-pattern, which the pattern uses as `event(name)`."""
        if definition.script.definitions:
            raise QueryError(f"the definition `{name}` has definitions of its own")
        definitions = (*self.script.definitions, s.Definition(name, definition.script.statement))
        return type(self)(replace(self.script, definitions=definitions, text=""))

    def one_or_more(self) -> Self:
        """Match a group of at least one event: `A+`."""
        return self._repeated(s.Repeat.ONE_OR_MORE)

    def any_number(self) -> Self:
        """Match a group that may be empty: `A*`."""
        return self._repeated(s.Repeat.ANY_NUMBER)

    def exactly(self, count: int) -> Self:
        """Match every choice of n events: `A[n]`."""
        return self._repeated(s.Repeat.EXACTLY, count)

    def __invert__(self) -> Self:
        return self._of(s.Not(self._pattern))

    def __and__(self, other: Buildable) -> Self:
        return self._combined(s.And, self, other)

    def __or__(self, other: Buildable) -> Self:
        return self._combined(s.Or, self, other)

    def __rshift__(self, other: Buildable) -> Self:
        return self._combined(s.Seq, self, other)

    def _with(self, clause: str) -> Self:
        """Add a clause, given as text; a second WHERE joins the first by AND."""
        fields, statement = parse_clauses(clause), self.script.statement
        if "where" in fields and statement.where is not None:
            fields["where"] = s.AllOf((*_conjuncts(statement.where), *_conjuncts(fields["where"])))
        elif "classes" in fields:
            fields["classes"] = (*statement.classes, *fields["classes"])
        elif any(getattr(statement, name) not in (None, ()) for name in fields):
            raise QueryError(f"`{clause}`: the query has this clause already")
        return type(self)(replace(self.script, statement=replace(statement, **fields), text=""))

    def _repeated(self, repeat: s.Repeat, count: int | None = None) -> Self:
        pattern = self._pattern
        if not isinstance(pattern, s.Event):
            hint = "`+`, `*` and `[n]` repeat events of one class only."
            raise QueryError(f"a quantifier on {print_pattern(pattern)}", hint=hint)
        if pattern.quantifier is not None:
            raise QueryError(f"a second quantifier on {print_pattern(pattern)}")
        if repeat is s.Repeat.EXACTLY and (count is None or count < 1):
            raise QueryError("a quantifier [n] takes a whole number of at least 1")
        return self._of(replace(pattern, quantifier=s.Quantifier(repeat, count)))

    @property
    def _pattern(self) -> s.Pattern:
        """Return the pattern if there is nothing else: only that can become part of a larger pattern."""
        if self.script.definitions or replace(self.script.statement, pattern=_ANY) != s.Statement(_ANY):
            hint = "build the whole pattern first, then add where(), within(), …"
            raise QueryError("a query with clauses cannot be part of a pattern", hint=hint)
        return self.script.statement.pattern

    @classmethod
    def _combined(cls, operator: type[s.Seq | s.And | s.Or], *operands: Buildable | str) -> Self:
        """Return SEQ, AND or OR: queries are operands, strings are the operator's predicates."""
        patterns = tuple(operand._pattern for operand in operands if not isinstance(operand, str))
        predicates = tuple(parse_expression(operand) for operand in operands if isinstance(operand, str))
        if not patterns:
            hint = 'give it events: ss.seq(ss.event("A", "a"), ss.event("B", "b")).'
            raise QueryError(f"{operator.__name__.lower()}() has no pattern", hint=hint)
        return cls._of(operator(patterns, predicates))

    @classmethod
    def _of(cls, pattern: s.Pattern) -> Self:
        return cls(Script((), s.Statement(pattern)))


def _conjuncts(expression: s.Expression) -> tuple[s.Expression, ...]:
    return expression.operands if isinstance(expression, s.AllOf) else (expression,)
