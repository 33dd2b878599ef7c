"""Bound query to physical plan, and the explanation of both."""

from streamsift.physical.explain import explain
from streamsift.physical.plan import AggregatePlan, ChoiceNames, Choices, DetectPlan, Plan, RankPlan, choices
from streamsift.physical.planner import plan

__all__ = ["AggregatePlan", "ChoiceNames", "Choices", "DetectPlan", "Plan", "RankPlan", "choices", "explain", "plan"]
