"""A figure of a paper and the workloads that measure the same here in, whether a run agrees out, and a sentence on it.

The numbers of a sentence are those of the run, and so is the verdict: nothing about a run is written by hand.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from benchmarks.harness.measure import Measured

Cases = list[Measured]


@dataclass(frozen=True, slots=True)
class Verdict:
    agrees: bool
    sentence: str


Rule = Callable[[Cases], Verdict]


@dataclass(frozen=True, slots=True)
class Finding:
    """A figure, what it finds in words of ours, its workloads by the beginning of their names, the rule for a run."""

    paper: str
    figure: str
    finds: str
    benchmark: str
    workloads: str
    rule: Rule
    queries_are_contenders: bool = False  # then they stand along the axis of a picture, a picture for each workload

    def cases(self, measured: Cases) -> Cases:
        return [each for each in measured if each.workload.startswith(self.workloads)]

    def name_of(self, case: Measured) -> str:
        """What sets a case apart from the others."""
        return case.workload.removeprefix(self.workloads).strip(" ,:") or case.workload


def findings(
    paper: str, benchmark: str, *found: tuple[str, str, Rule] | tuple[str, str, Rule, str]
) -> Iterator[Finding]:
    """Of one paper and benchmark: figure, what it finds, rule, and how the workloads' names begin if not so."""
    for figure, finds, rule, *start in found:
        yield Finding(paper, figure, finds, benchmark, start[0] if start else figure, rule)


def ratio(case: Measured, slower: str, faster: str) -> float:
    """How many times as much the best contender takes whose name begins with one word as the best with another."""
    medians = {times.name: times.median for times in case.times}
    slow = min(taken for name, taken in medians.items() if name.startswith(slower))
    fast = min(taken for name, taken in medians.items() if name.startswith(faster))
    return slow / max(fast, 1e-9)


def _has(case: Measured, name: str) -> bool:
    return any(times.name.startswith(name) for times in case.times)


# --- rules ---------------------------------------------------------------------------------------------------------


def grows(least: float = 1.1, of: str = "") -> Rule:
    """From the first case to the last, for the first contender or the one whose name is given."""
    return _from_first_to_last(of, lambda grown: grown >= least)


def flat(most: float) -> Rule:
    return _from_first_to_last("", lambda grown: grown <= most)


def shrinks(of: str) -> Rule:
    return _from_first_to_last(of, lambda grown: grown < 1)


def _from_first_to_last(of: str, agrees: Callable[[float], bool]) -> Rule:
    def judge(cases: Cases) -> Verdict:
        first, last = (next(t for t in case.times if t.name.startswith(of)) for case in (cases[0], cases[-1]))
        grown = last.median / max(first.median, 1e-9)
        return Verdict(agrees(grown), f"{first.name} takes {grown:.2f}× as much in the last case as in the first")

    return judge


def gains(least: float, slower: str, faster: str) -> Rule:
    """In every case in which both take part."""

    def judge(cases: Cases) -> Verdict:
        both = [case for case in cases if _has(case, slower) and _has(case, faster)]
        ratios = [ratio(case, slower, faster) for case in both]
        span = f"{min(ratios):,.2f}×" + f" to {max(ratios):,.2f}×" * (len(ratios) > 1)
        where = f", in the {len(both)} of {len(cases)} cases that it ends in" * (len(both) < len(cases))
        return Verdict(min(ratios) >= least, f"{slower} takes {span} of what {faster} takes{where}")

    return judge


def gains_more(slower: str, faster: str) -> Rule:
    """From the first case to the last, and at last there is a gain."""
    return _gain_changes(slower, faster, lambda first, last: 1 < last > first)


def gains_less(slower: str, faster: str) -> Rule:
    return _gain_changes(slower, faster, lambda first, last: last < first)


def _gain_changes(slower: str, faster: str, agrees: Callable[[float, float], bool]) -> Rule:
    def judge(cases: Cases) -> Verdict:
        first, last = ratio(cases[0], slower, faster), ratio(cases[-1], slower, faster)
        told = f"{slower} takes {first:,.2f}× of what {faster} takes in the first case, {last:,.2f}× in the last"
        return Verdict(agrees(first, last), told)

    return judge


def later_take_longer(first: str, last: str) -> Rule:
    """The queries of an experiment are contenders of one workload."""
    return gains(1.1, last, first)


def least_is(name: str) -> Rule:
    return _extreme(name, "least", min)


def most_is(name: str) -> Rule:
    return _extreme(name, "most", max)


def _extreme(name: str, word: str, pick: Callable[..., tuple[float, str]]) -> Rule:
    def judge(cases: Cases) -> Verdict:
        picked = [pick((times.median, times.name) for times in case.times)[1] for case in cases]
        count = sum(each.startswith(name) for each in picked)
        return Verdict(count == len(cases), f"{name} takes the {word} in {count} of {len(cases)} cases")

    return judge


def winners_differ(cases: Cases) -> Verdict:
    """Among the shapes; the first contender is what `auto` takes."""
    winners = Counter(min(case.times[1:], key=lambda times: times.median).name for case in cases)
    told = ", ".join(f"{name} in {count}" for name, count in winners.most_common())
    return Verdict(len(winners) > 1, f"the fastest shapes are {told} of {len(cases)} cases")


def exactly_three_is_least(plan: str) -> Rule:
    """Cases by three: exactly three events, one or more, none or more, at one position after the other."""

    def judge(cases: Cases) -> Verdict:
        taken = [next(times.median for times in case.times if times.name == plan) for case in cases]
        positions = [taken[at : at + 3] for at in range(0, len(taken), 3)]
        ratios = [three / max(min(more, any_number), 1e-9) for three, more, any_number in positions]
        told = ", ".join(f"{each:.2f}×" for each in ratios)
        return Verdict(max(ratios) < 1, f"[3] takes {told} of the better of + and *, by position")

    return judge
