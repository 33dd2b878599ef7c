"""Plan how a bound query is evaluated, and explain the plan.

- `planner`: choose the plan of a query, or raise if no strategy can evaluate it;
- `plan`: the classes of plans, and the planner options;
- `detect`: plan steps, negations, keys and join trees of single events;
- `groups`: plan Kleene groups;
- `count`, `rank`: choose the strategies of AGG and PREF;
- `stream`: plan how a query runs on a stream;
- `row_match`: plan MATCH_RECOGNIZE;
- `share`: plan which of several queries share counters;
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
