"""List the relations between the steps of an alternative, for any order in which they are bound.

Sides that must be equal form an equivalence class. A part of the pattern is looked up by the classes that it shares
with a bound step, and a definition window bounds where it can lie. Other comparisons are tested when their second step
is bound.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache

import numpy as np

from streamsift.logical.bound import Expr
from streamsift.physical.detect import WindowBound, window_bound
from streamsift.physical.plan import Alternative

Side = tuple[int, Expr]  # a step, and the expression that a comparison reads from its event
Comparison = tuple[Side, str, Side]
Lookup = tuple[tuple[Side, Side], ...]  # equalities of ONE bound step with ONE step of a part; the bound side is first


@dataclass(frozen=True, slots=True)
class Linked:
    """The relations of one part of the pattern to the bound steps."""

    lookup: Lookup
    comparisons: tuple[Comparison, ...]
    limits: tuple[tuple[int, WindowBound], ...]  # bound steps whose definition window bounds the part's first event
    lower: tuple[int, ...]  # bound steps that must precede the part
    upper: tuple[int, ...]  # bound steps that must follow it


class Relations:
    """The comparisons, windows, equalities and order between the steps of an alternative."""

    def __init__(self, alternative: Alternative) -> None:
        self.comparisons: list[Comparison] = []
        self.windows: list[Comparison] = []  # of definitions
        self.definitions: dict[str, set[int]] = {}  # the steps of each definition that has a window
        self.equal: list[list[Side]] = []
        self.link = cache(self._link)  # the same for every slice
        count = len(alternative.steps)
        self.before = np.zeros((count, count), np.bool_)  # [i, j]: i must precede j, directly or indirectly
        for number, step in enumerate(alternative.steps):
            for pair in step.compared:
                earlier, this = (pair.earlier, pair.earlier_side), (number, pair.this_side)
                if pair.op == "=":
                    self._unite(earlier, this)
                elif (window := window_bound(pair.earlier_side, pair.this_side)) is not None:
                    self.windows.append((earlier, pair.op, this))
                    self.definitions.setdefault(window.definition, set()).update((pair.earlier, number))
                else:
                    self.comparisons.append((earlier, pair.op, this))
            for earlier_step in step.after:
                self.before[:, number] |= self.before[:, earlier_step]
                self.before[earlier_step, number] = True

    def _unite(self, *sides: Side) -> None:
        together = [one for one in self.equal if any(side in one for side in sides)]
        self.equal = [one for one in self.equal if one not in together]
        merged = [side for one in together for side in one]
        self.equal.append(merged + [side for side in sides if side not in merged])

    def _link(self, bound: tuple[int, ...], part: tuple[int, ...]) -> Linked:
        """Return the relations of a part to the bound steps."""
        equalities: list[tuple[Side, Side]] = []
        for sides in self.equal:
            before = [side for side in sides if side[0] in bound]
            # Within a part, all sides already equal those of its first step.
            first = next((step for step in part if any(side[0] == step for side in sides)), None)
            inside = [side for side in sides if side[0] == first]
            if before:
                equalities += [(before[0], side) for side in inside]
            elif len(part) == 1:
                equalities += [(inside[0], side) for side in inside[1:]]
        tied = Counter((left[0], right[0]) for left, right in equalities if left[0] in bound)
        best = tied.most_common(1)
        lookup = tuple(e for e in equalities if best and (e[0][0], e[1][0]) == best[0][0])
        comparisons: list[Comparison] = [(e[0], "=", e[1]) for e in equalities if e not in lookup]
        # A definition window bounds only the first event of a part; the others are compared.
        compared = self.comparisons if len(part) == 1 else [*self.comparisons, *self.windows]
        for comparison in compared:
            both = {comparison[0][0], comparison[2][0]}
            # The part binds the second side of the comparison; both sides inside the part were compared before.
            if both <= {*bound, *part} and not both <= {*bound} and (len(part) == 1 or not both <= {*part}):
                comparisons.append(comparison)
        limits = self._limits(bound, min(part))
        lower = self._nearest(b for b in bound if any(self.before[b, p] for p in part))
        upper = self._nearest((b for b in bound if any(self.before[p, b] for p in part)), upwards=False)
        return Linked(lookup, tuple(comparisons), tuple(limits), lower, upper)

    def _limits(self, bound: Sequence[int], step: int) -> Iterator[tuple[int, WindowBound]]:
        """Yield the bounds from definition windows: any two events share a window; order already bounds one side."""
        for name, steps in self.definitions.items():
            for other in bound:
                if {step, other} <= steps:
                    if not self.before[step, other]:
                        yield other, WindowBound(name, is_upper=True)
                    if not self.before[other, step]:
                        yield other, WindowBound(name, is_upper=False)

    def _nearest(self, steps: Iterable[int], *, upwards: bool = True) -> tuple[int, ...]:
        """Return the steps that none of the others must follow (`upwards`) or precede."""
        among, before = list(steps), self.before if upwards else self.before.T
        return tuple(step for step in among if not any(before[step, other] for other in among))
