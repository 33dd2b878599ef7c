"""What the papers' measured tables and figures find, in words of ours, and which workloads here measure the same."""

from __future__ import annotations

from dataclasses import dataclass

from benchmarks.harness.measure import Measured

CPR = "*CPR: Complex Pattern Ranking*"
AGGREGATION = "*Online Aggregation of Stream Sequence Patterns*"
NESTED = "*Processing Nested Complex Sequence Pattern Queries*"
CONDENSED = "*Sequence Event Detection through Condensed Composition*"
KLEENE = "*Kleene Operators on Binary Tree-based Directed Graph*"


@dataclass(frozen=True, slots=True)
class Finding:
    """A figure, what it finds, and the workloads by the beginning of their names."""

    where: str
    finds: str
    benchmark: str
    workloads: str

    def cases(self, measured: list[Measured]) -> list[Measured]:
        return [each for each in measured if each.workload.startswith(self.workloads)]


FINDINGS = (
    Finding(
        f"{AGGREGATION}, figure 12",
        "counting prefixes hardly depends on the pattern's length, building matches grows exponentially",
        "aggregation",
        "figure 12",
    ),
    Finding(
        f"{AGGREGATION}, figure 13",
        "counting grows in step with the window, building matches far faster",
        "aggregation",
        "figure 13",
    ),
    Finding(
        f"{AGGREGATION}, figure 14a",
        "up to length 10 in a window of 2 s no slowdown, where building matches runs out of memory",
        "aggregation",
        "figure 14a",
    ),
    Finding(f"{AGGREGATION}, figure 14b", "a negation costs almost nothing", "aggregation", "figure 14b"),
    Finding(
        f"{AGGREGATION}, figure 15",
        "building matches, even shared, takes at least 100 times as long as counting",
        "aggregation",
        "figure 15",
    ),
    Finding(
        f"{AGGREGATION}, figure 16a",
        "2 to 6 queries with a common prefix: sharing takes half the time",
        "aggregation",
        "figure 16a",
    ),
    Finding(
        f"{AGGREGATION}, figure 16b",
        "sharing gains 3 to 5 times as the common prefix grows from 2 to 6",
        "aggregation",
        "figure 16b",
    ),
    Finding(
        f"{AGGREGATION}, figure 16c",
        "chop-connect gains 1.3 to 2.6 times as the common part grows from 2 to 6",
        "aggregation",
        "figure 16c",
    ),
    Finding(
        f"{AGGREGATION}, figure 16d",
        "chop-connect gains about 2 times, more with more queries",
        "aggregation",
        "figure 16d",
    ),
    Finding(f"{NESTED}, figure 6a", "more negated sub-queries take longer", "nested", "number of sub-queries"),
    Finding(f"{NESTED}, figure 6b", "longer negated sub-queries take longer", "nested", "length of the sub-query"),
    Finding(f"{NESTED}, figure 6c", "deeper nesting takes longer", "nested", "nesting level"),
    Finding(f"{NESTED}, figure 8", "caching the inner sub-query always pays", "nested", "q10"),
    Finding(f"{CONDENSED}, figure 8a", "condensing is faster at every window", "condensed", "window"),
    Finding(f"{CONDENSED}, figure 8b", "condensing is faster for every number of classes", "condensed", "classes"),
    Finding(
        f"{CONDENSED}, figure 8c",
        "on quotes condensing gains more as the window grows, about 100 times at 90 s",
        "condensed",
        "Query 3",
    ),
    Finding(
        f"{KLEENE}, figures 7 and 8", "which shape of the joins is fastest depends on the populations", "shapes", ""
    ),
    Finding(
        f"{CPR}, figures 4.2 and 4.3",
        "best paths beat enumeration and a dynamic Yen by orders of magnitude, more for larger k and windows",
        "ranking",
        "window",
    ),
    Finding(f"{CPR}, figures 4.4 to 4.8", "WABS reads least of all schedules", "schedules", ""),
    Finding(f"{CPR}, figure 4.9", "keeping joins when the window moves saves a third or more", "merging", ""),
)
