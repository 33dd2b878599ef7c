"""Bound query to physical plan, and the explanation of both."""

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

__all__ = [
    "AggregatePlan",
    "DetectPlan",
    "Plan",
    "PlannerKeywords",
    "PlannerOptions",
    "RankPlan",
    "explain",
    "plan",
    "planner_options",
]
