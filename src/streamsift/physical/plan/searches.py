"""Choose the search that finds the single events of an alternative: the engine, explain and analyze all ask here."""

from __future__ import annotations

from enum import Enum, auto

from streamsift.physical.plan.join_trees import Tree, forced
from streamsift.physical.plan.options import Condense, PlannerOptions, PlanShape
from streamsift.physical.plan.plan import Alternative


class SearchBy(Enum):
    """Which of the three searches runs."""

    NESTED = auto()  # depth first in the order of the pattern; negations are decided on the way
    SEQUENCE = auto()  # depth first in order of time, for sequences without negations
    TREES = auto()  # by trees of joins, chosen slice by slice; negations are applied to the matches found


def search_by(alternative: Alternative, choices: PlannerOptions) -> SearchBy:
    """Return the search that a run with these choices uses."""
    if alternative.negations:
        return SearchBy.NESTED if choices.plan in (PlanShape.AUTO, PlanShape.LEFT) else SearchBy.TREES
    is_pair = len(alternative.steps) < 3 and choices.plan is PlanShape.AUTO and choices.condense is not Condense.ON
    is_plain = choices.plan is PlanShape.LEFT and choices.condense is Condense.OFF
    return SearchBy.SEQUENCE if alternative.is_sequence and (is_pair or is_plain) else SearchBy.TREES


def forced_tree(alternative: Alternative, choices: PlannerOptions) -> Tree | None:
    """Return the tree that the caller asks for; None if the cost model chooses it."""
    if choices.plan is PlanShape.AUTO:
        return None
    # The halves of an AND may overlap in time: it is bound event by event.
    is_bushy_and = choices.plan is PlanShape.BUSHY and not alternative.is_sequence
    return forced(PlanShape.LEFT if is_bushy_and else choices.plan, range(len(alternative.steps)))
