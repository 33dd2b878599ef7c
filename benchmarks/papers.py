"""What the papers' measured figures find, in words of ours, which workloads here measure the same, and how to agree."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from benchmarks.harness.measure import Measured

CPR = "*CPR: Complex Pattern Ranking*"
AGGREGATION = "*Online Aggregation of Stream Sequence Patterns*"
NESTED = "*Processing Nested Complex Sequence Pattern Queries*"
CONDENSED = "*Sequence Event Detection through Condensed Composition*"
KLEENE = "*Kleene Operators on Binary Tree-based Directed Graph*"

Cases = list[Measured]
Expectation = Callable[[Cases], bool]


@dataclass(frozen=True, slots=True)
class Finding:
    """A figure, what it finds, its workloads by the beginning of their names, and whether a run finds it too."""

    where: str
    finds: str
    benchmark: str
    workloads: str
    agrees: Expectation

    def cases(self, measured: Cases) -> Cases:
        return [each for each in measured if each.workload.startswith(self.workloads)]


def growth(cases: Cases) -> float:
    """How many times as long the first contender takes in the last case as in the first."""
    return cases[-1].times[0].median / cases[0].times[0].median


def gain(case: Measured, slower: str, faster: str = "") -> float:
    """How many times as long the contenders whose names begin with one word take as those that begin with another."""
    medians = {times.name: times.median for times in case.times}
    slow = [taken for name, taken in medians.items() if name.startswith(slower)]
    fast = [taken for name, taken in medians.items() if name.startswith(faster)]
    return min(slow) / min(fast)


def flat(most: float) -> Expectation:
    return lambda cases: growth(cases) <= most


def grows(cases: Cases) -> bool:
    return growth(cases) > 1.1


def gains(least: float, slower: str, faster: str = "") -> Expectation:
    """In every case."""
    return lambda cases: all(gain(case, slower, faster) >= least for case in cases)


def gains_more(slower: str, faster: str) -> Expectation:
    """From the first case to the last."""
    return lambda cases: 1 < gain(cases[-1], slower, faster) > gain(cases[0], slower, faster)


def later_take_longer(first: str, last: str) -> Expectation:
    """The queries of an experiment are contenders of one workload."""
    return lambda cases: all(gain(case, last, first) > 1.1 for case in cases)


def winners_differ(cases: Cases) -> bool:
    """Among the shapes; the first contender is what `auto` takes."""
    return len({min(case.times[1:], key=lambda times: times.median).name for case in cases}) > 1


ALONE, SHARED = "one by one", "run_many"
FINDINGS = (
    Finding(
        f"{AGGREGATION}, figure 12",
        "counting hardly depends on the pattern's length (building matches grows exponentially)",
        "aggregation",
        "figure 12",
        flat(1.5),
    ),
    Finding(f"{AGGREGATION}, figure 13", "counting grows with the window", "aggregation", "figure 13", grows),
    Finding(f"{AGGREGATION}, figure 14a", "no slowdown up to length 10", "aggregation", "figure 14a", flat(1.5)),
    Finding(f"{AGGREGATION}, figure 14b", "a negation costs almost nothing", "aggregation", "figure 14b", flat(1.2)),
    Finding(
        f"{AGGREGATION}, figure 15",
        "building matches takes at least 100 times as long as shared counting",
        "aggregation",
        "figure 15",
        gains(100, "detect", "chop"),
    ),
    Finding(
        f"{AGGREGATION}, figure 16a",
        "sharing a prefix takes about half the time for 2 to 6 queries",
        "aggregation",
        "figure 16a",
        gains(1.8, ALONE, SHARED),
    ),
    Finding(
        f"{AGGREGATION}, figure 16b",
        "sharing gains more the longer the common prefix",
        "aggregation",
        "figure 16b",
        gains_more(ALONE, SHARED),
    ),
    Finding(
        f"{AGGREGATION}, figure 16c",
        "chop-connect gains more the longer the common part",
        "aggregation",
        "figure 16c",
        gains_more(ALONE, SHARED),
    ),
    Finding(
        f"{AGGREGATION}, figure 16d",
        "chop-connect gains more with more queries",
        "aggregation",
        "figure 16d",
        gains_more(ALONE, SHARED),
    ),
    Finding(
        f"{NESTED}, figure 6a",
        "more negated sub-queries take longer",
        "nested",
        "number of sub-queries",
        later_take_longer("q1", "q3"),
    ),
    Finding(
        f"{NESTED}, figure 6b",
        "longer negated sub-queries take longer",
        "nested",
        "length of the sub-query",
        later_take_longer("q4", "q6"),
    ),
    Finding(
        f"{NESTED}, figure 6c", "deeper nesting takes longer", "nested", "nesting level", later_take_longer("q7", "q9")
    ),
    Finding(
        f"{NESTED}, figure 8",
        "caching the inner sub-query pays",
        "nested",
        "q10",
        gains(1, "inner again", "inner cached"),
    ),
    Finding(
        f"{CONDENSED}, figure 8a",
        "condensing is faster at every window",
        "condensed",
        "window",
        gains(1, "condense=off", "condense=on"),
    ),
    Finding(
        f"{CONDENSED}, figure 8b",
        "condensing is faster for every number of classes",
        "condensed",
        "classes",
        gains(1, "condense=off", "condense=on"),
    ),
    Finding(
        f"{CONDENSED}, figure 8c",
        "on quotes condensing gains more as the window grows",
        "condensed",
        "Query 3",
        gains_more("condense=off", "condense=on"),
    ),
    Finding(
        f"{KLEENE}, figure 7",
        "which shape is fastest depends on the group's place",
        "shapes",
        "figure 7",
        winners_differ,
    ),
    Finding(
        f"{KLEENE}, figure 8", "which shape is fastest depends on the populations", "shapes", "figure 8", winners_differ
    ),
    Finding(
        f"{KLEENE}, figure 9",
        "which shape gains from a predicate depends on its place",
        "shapes",
        "figure 9",
        winners_differ,
    ),
    Finding(f"{KLEENE}, figure 10", "longer windows take longer", "shapes", "figure 10", grows),
    Finding(
        f"{CPR}, figure 4.2",
        "best paths are more than 100 times as fast as enumerating all matches",
        "ranking",
        "window 5,000, k 100, whole engine",
        gains(100, "enumerate", "auto"),
    ),
)
