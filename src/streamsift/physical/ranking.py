"""A detection plan and the query's preferences in, the ranking plan out: how the k best matches will be found."""

from __future__ import annotations

from collections.abc import Iterator

from streamsift.physical.plan import DetectPlan, RankPlan


def ranking(detection: DetectPlan) -> RankPlan:
    return RankPlan(detection.query, detection, tuple(_reasons(detection)))


def describe_ranking(plan: RankPlan) -> Iterator[str]:
    """What is ranked, for explain; the steps of detection follow."""
    query = plan.query
    assert query.ranking is not None
    of_group = f" of each {', '.join(query.group_names)}" if query.group_names else ""
    at_tick = f" every {query.update.text}" if query.update else ""
    yield f"rank, the best {query.ranking.limit}{of_group}{at_tick}"


def _reasons(detection: DetectPlan) -> list[str]:
    return ["rank: every match is found and scored, chunk by chunk; the best of each tick are kept"]
