"""A query on its way from text to plan in, the explanation of each stage out."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from streamsift import logical, physical
from streamsift.view.notebook import Explanation, sections
from streamsift.view.plan_tree import plan_svg


@dataclass(frozen=True, slots=True)
class Stages:
    """What a query became at each stage."""

    text: str
    bound: logical.BoundQuery
    optimised: logical.BoundQuery
    rules: tuple[str, ...]
    plan: physical.Plan

    def explain(self, where: Sequence[str] = (), analysed: Sequence[str] = ()) -> Explanation:
        text = physical.explain(self.text, self.bound, self.optimised, self.rules, self.plan, where, analysed)
        physical_lines = sections(text)["Physical"]
        return Explanation(text, plan_svg(self.optimised, physical_lines[0]))
