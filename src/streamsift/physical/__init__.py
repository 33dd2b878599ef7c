"""Bound query to physical plan, and the explanation of both."""

from streamsift.physical.explain.explain import explain
from streamsift.physical.plan.options import ChoiceNames, Choices, choices
from streamsift.physical.plan.plan import AggregatePlan, DetectPlan, Plan, RankPlan
from streamsift.physical.planner import plan

__all__ = ["AggregatePlan", "ChoiceNames", "Choices", "DetectPlan", "Plan", "RankPlan", "choices", "explain", "plan"]
