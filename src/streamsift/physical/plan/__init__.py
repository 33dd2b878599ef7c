"""Declare the physical plans and the planner options.

- `plan`: steps, negations, alternatives, and the plans of detection, aggregation and ranking;
- `groups`: the part of an alternative that binds Kleene variables;
- `join_trees`: join trees of given shapes, and the choice of a search for an alternative;
- `scores`: scores as weighted sums, and as monotone functions of single-variable parts;
- `options`: the table of planner options.

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
from streamsift.physical.plan.join_trees import (
    Join,
    JoinLeaf,
    SearchBy,
    Tree,
    forced,
    forced_tree,
    is_left_deep,
    search_by,
    steps_of,
    units_of,
)
from streamsift.physical.plan.options import (
    Cache,
    Condense,
    CountBy,
    PlannerKeywords,
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
    RankBranch,
    RankPlan,
    Refused,
    Step,
    Strategy,
    is_sequence,
)
from streamsift.physical.plan.scores import LinearScore, MonotoneObjective, Term, linear_score, monotone_objectives
