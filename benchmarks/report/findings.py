"""Decide whether a run agrees with a finding of a paper, and say so in a sentence.

The verdict and the numbers of the sentence come from the record of the run; none is written by hand.
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
    """A figure of a paper, its finding in our words, the prefix of its workloads' names, and the rule for a run."""

    paper: str
    figure: str
    finds: str
    benchmark: str
    workloads: str
    rule: Rule
    queries_are_contenders: bool = False  # then they are points of the x axis, with a panel per workload

    def cases(self, measured: Cases) -> Cases:
        return [each for each in measured if each.workload.startswith(self.workloads)]

    def name_of(self, case: Measured) -> str:
        """Return the part of a name that distinguishes a case from the others."""
        return case.workload.removeprefix(self.workloads).strip(" ,:") or case.workload


def findings(
    paper: str, benchmark: str, *found: tuple[str, str, Rule] | tuple[str, str, Rule, str]
) -> Iterator[Finding]:
    """Yield the findings of one paper and benchmark: figure, finding, rule and, unless it is the figure, the prefix."""
    for figure, finds, rule, *start in found:
        yield Finding(paper, figure, finds, benchmark, start[0] if start else figure, rule)


def ratio(case: Measured, slower: str, faster: str) -> float:
    """Return the best value of the `slower` names, relative to the best of the `faster` names."""
    medians = {times.name: times.median for times in case.times}
    slow = min(taken for name, taken in medians.items() if name.startswith(slower))
    fast = min(taken for name, taken in medians.items() if name.startswith(faster))
    return slow / max(fast, 1e-9)


def _has(case: Measured, name: str) -> bool:
    return any(times.name.startswith(name) for times in case.times)


# --- rules ---------------------------------------------------------------------------------------------------------


def grows(least: float = 1.1, of: str = "") -> Rule:
    """Agree if the value grows from the first case to the last, for the first name or the given one."""
    return _from_first_to_last(of, lambda grown: grown >= least)


def flat(most: float) -> Rule:
    return _from_first_to_last("", lambda grown: grown <= most)


def shrinks(of: str) -> Rule:
    return _from_first_to_last(of, lambda grown: grown < 1)


def _from_first_to_last(of: str, agrees: Callable[[float], bool]) -> Rule:
    def judge(cases: Cases) -> Verdict:
        first, last = (next(t for t in case.times if t.name.startswith(of)) for case in (cases[0], cases[-1]))
        grown = last.median / max(first.median, 1e-9)
        return Verdict(agrees(grown), f"{first.name}: {grown:.2f}× from the first case to the last")

    return judge


def gains(least: float, slower: str, faster: str) -> Rule:
    """Agree if the gain is large enough in every case that has both."""

    def judge(cases: Cases) -> Verdict:
        both = [case for case in cases if _has(case, slower) and _has(case, faster)]
        ratios = [ratio(case, slower, faster) for case in both]
        span = f"{min(ratios):,.2f}×" + f" to {max(ratios):,.2f}×" * (len(ratios) > 1)
        where = f", in the {len(both)} of {len(cases)} cases in which it finishes" * (len(both) < len(cases))
        return Verdict(min(ratios) >= least, f"{slower}: {span} relative to {faster}{where}")

    return judge


def gains_more(slower: str, faster: str) -> Rule:
    """Agree if the gain grows from the first case to the last, and the last case has a gain."""
    return _gain_changes(slower, faster, lambda first, last: 1 < last > first)


def gains_less(slower: str, faster: str) -> Rule:
    return _gain_changes(slower, faster, lambda first, last: last < first)


def _gain_changes(slower: str, faster: str, agrees: Callable[[float, float], bool]) -> Rule:
    def judge(cases: Cases) -> Verdict:
        first, last = ratio(cases[0], slower, faster), ratio(cases[-1], slower, faster)
        sentence = f"{slower} relative to {faster}: {first:,.2f}× in the first case, {last:,.2f}× in the last"
        return Verdict(agrees(first, last), sentence)

    return judge


def later_take_longer(first: str, last: str) -> Rule:
    """Agree if the last query of an experiment takes longer than the first; all are measured on one workload."""
    return gains(1.1, last, first)


def least_is(name: str) -> Rule:
    return _extreme(name, "lowest", min)


def most_is(name: str) -> Rule:
    return _extreme(name, "highest", max)


def _extreme(name: str, word: str, pick: Callable[..., tuple[float, str]]) -> Rule:
    def judge(cases: Cases) -> Verdict:
        picked = [pick((times.median, times.name) for times in case.times)[1] for case in cases]
        count = sum(each.startswith(name) for each in picked)
        return Verdict(count == len(cases), f"{name} is {word} in {count} of {len(cases)} cases")

    return judge


def winners_differ(cases: Cases) -> Verdict:
    """Agree if different shapes win. The first time of a case is that of `auto`, which is not a shape."""
    winners = Counter(min(case.times[1:], key=lambda times: times.median).name for case in cases)
    wins = ", ".join(f"{name} in {count}" for name, count in winners.most_common())
    return Verdict(len(winners) > 1, f"lowest of {len(cases)} cases: {wins}")


def exactly_three_is_least(plan: str) -> Rule:
    """Agree if `[3]` is below `+` and `*` at each position; cases come in threes, one position after the other."""

    def judge(cases: Cases) -> Verdict:
        taken = [next(times.median for times in case.times if times.name == plan) for case in cases]
        positions = [taken[at : at + 3] for at in range(0, len(taken), 3)]
        ratios = [three / max(min(more, any_number), 1e-9) for three, more, any_number in positions]
        listed = ", ".join(f"{each:.2f}×" for each in ratios)
        return Verdict(max(ratios) < 1, f"[3] relative to the lower of + and *, by position: {listed}")

    return judge
