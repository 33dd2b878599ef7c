"""Declare the physical plans, and the options by which callers choose among them.

- `plan`: steps, negations, alternatives, and the plans of detection, aggregation and ranking;
- `groups`: the part of an alternative that binds Kleene variables;
- `join_trees`: trees of joins, of given shapes;
- `linear`, `monotone`: scores as weighted sums, and as parts of which each event has its own;
- `searches`: which search finds the matches of an alternative;
- `options`: the one table of planner options.

A query has a `DetectPlan`; with AGG an `AggregatePlan` and with PREF a `RankPlan` over it.
"""

from streamsift.physical.plan.groups import (
    Decided,
    FixedGroup,
    GroupNegation,
    GroupSearchPlan,
    Growth,
    Key,
    KleeneGroups,
    MaximalGroup,
    Order,
    Side,
    ordered_steps,
)
from streamsift.physical.plan.join_trees import Join, JoinLeaf, Tree, forced, is_left_deep, steps_of, units_of
from streamsift.physical.plan.linear import LinearScore, Term, linear_score
from streamsift.physical.plan.monotone import MonotoneObjective, monotone_objectives
from streamsift.physical.plan.options import (
    Cache,
    Condense,
    CountBy,
    PlannerKeywords,
    PlannerOption,
    PlannerOptions,
    PlanShape,
    RankBy,
    Schedule,
    Spread,
    option_table,
    planner_options,
)
from streamsift.physical.plan.plan import (
    MIRRORED,
    AggregatePlan,
    Alternative,
    Branch,
    Component,
    DetectPlan,
    Edge,
    JoinPlan,
    Limit,
    MergePlan,
    Negation,
    Pair,
    PathPlan,
    Plan,
    RankPlan,
    Refused,
    Step,
    Strategy,
    is_sequence,
)
from streamsift.physical.plan.searches import SearchBy, forced_tree, search_by
