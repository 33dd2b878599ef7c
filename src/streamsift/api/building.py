"""Build queries by Python calls: a call adds the clause that the text would have."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

from streamsift.language import Script, syntax
from streamsift.logical import builder


@dataclass(frozen=True)
class Buildable:
    """A script that every method returns anew with a clause more, or as part of a larger pattern."""

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
        return type(self)(builder.with_definition(self.script, name, definition.script))

    def one_or_more(self) -> Self:
        """Match a group of at least one event: `A+`."""
        return self._repeated(syntax.Repeat.ONE_OR_MORE)

    def any_number(self) -> Self:
        """Match a group that may be empty: `A*`."""
        return self._repeated(syntax.Repeat.ANY_NUMBER)

    def exactly(self, count: int) -> Self:
        """Match every choice of n events: `A[n]`."""
        return self._repeated(syntax.Repeat.EXACTLY, count)

    def __invert__(self) -> Self:
        return self._of(syntax.Not(builder.only_pattern(self.script)))

    def __and__(self, other: Buildable) -> Self:
        return self._of(builder.operator_pattern(syntax.And, self._both(other)))

    def __or__(self, other: Buildable) -> Self:
        return self._of(builder.operator_pattern(syntax.Or, self._both(other)))

    def __rshift__(self, other: Buildable) -> Self:
        return self._of(builder.operator_pattern(syntax.Seq, self._both(other)))

    def _with(self, clause: str) -> Self:
        return type(self)(builder.with_clause(self.script, clause))

    def _repeated(self, repeat: syntax.Repeat, count: int | None = None) -> Self:
        return self._of(builder.repeated(builder.only_pattern(self.script), repeat, count))

    def _both(self, other: Buildable) -> tuple[syntax.Pattern, syntax.Pattern]:
        return builder.only_pattern(self.script), builder.only_pattern(other.script)

    @classmethod
    def _of(cls, pattern: syntax.Pattern) -> Self:
        return cls(builder.of_pattern(pattern))
