"""Plan how a bound query is evaluated, and explain the plan.

- `planner`: choose the plan of a query; raise what no strategy can evaluate;
- `plan`: the classes of plans, and the options of callers;
- `detect`: plan steps, negations, keys and join trees of single events;
- `groups`: plan Kleene groups;
- `count`, `rank`: choose how AGG counts and how PREF ranks;
- `stream`: plan how a query runs on a stream;
- `share`: plan which of several queries are counted together;
- `explain`: describe all of it.
"""

from streamsift.physical.explain import explain
from streamsift.physical.plan import (
    AggregatePlan,
    DetectPlan,
    Plan,
    PlannerKeywords,
    PlannerOptions,
    RankPlan,
    planner_options,
)
from streamsift.physical.planner import plan
