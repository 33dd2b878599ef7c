"""Run a workload on a plain Python automaton like that of SASE, one event at a time.

This is our own baseline, not another project's engine. Each key has a stack of events per state; an event of the last
state walks the stacks backward and builds the matches that it ends. It shows the cost of interpretation.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections import defaultdict
from collections.abc import Callable

import pyarrow as pa

from benchmarks.engines.question import Kind, Question
from benchmarks.harness.answers import Answer, answer_of_table
from benchmarks.harness.experiment import Contender, Side, in_process

Stack = tuple[list[int], list[int]]  # times and event numbers
Rows = list[tuple[int | list[int], ...]]
LAST = {Kind.SEQUENCE: "C", Kind.NEGATION: "B", Kind.GROUP: "C", Kind.NEXT: "B", Kind.COUNT: "D"}
HELD = {Kind.SEQUENCE: "AB", Kind.NEGATION: "AD", Kind.GROUP: "AB", Kind.NEXT: "A", Kind.COUNT: "ABC"}


def contender(question: Question) -> Contender:
    columns = [question.events.column(name).to_pylist() for name in ("n", "t", "kind", "key")]
    tape = list(zip(*columns, strict=True))

    def answer(rows: Rows) -> Answer:
        return answer_of_table(pa.table(list(zip(*rows, strict=True)), question.columns), question.columns)

    run = _counts if question.kind is Kind.COUNT else _matches
    name = "plain Python automaton, our own, in the manner of SASE"
    return in_process(name, Side.YARDSTICK, lambda: run(question.kind, question.window_ms, tape), answer)


def _matches(kind: Kind, window: int, tape: list[tuple[int, int, str, int]]) -> Rows:
    stacks: defaultdict[int, dict[str, Stack]] = defaultdict(lambda: {held: ([], []) for held in HELD[kind]})
    end, last, rows = ENDINGS[kind], LAST[kind], Rows()
    for number, time, name, key in tape:
        of_key = stacks[key]
        if name == last:
            _purge(of_key, time - window)
            end(of_key, number, rows)
        _push(of_key, name, time, number)
    return rows


def _counts(kind: Kind, window: int, tape: list[tuple[int, int, str, int]]) -> Rows:
    """Build and count each match; keep the starts of a key's matches while they are in the window."""
    stacks: defaultdict[int, dict[str, Stack]] = defaultdict(lambda: {held: ([], []) for held in HELD[kind]})
    starts_of: defaultdict[int, list[int]] = defaultdict(list)
    rows = Rows()
    for number, time, name, key in tape:
        of_key = stacks[key]
        if name == LAST[kind]:
            _purge(of_key, time - window)
            ended = _starts(of_key)
            starts_of[key] = [start for start in starts_of[key] if start >= time - window] + ended
            if ended:
                rows.append((key, time, len(starts_of[key])))
        _push(of_key, name, time, number)
    return rows


def _push(stacks: dict[str, Stack], name: str, time: int, number: int) -> None:
    if name in stacks:
        times, numbers = stacks[name]
        times.append(time)
        numbers.append(number)


def _purge(stacks: dict[str, Stack], since: int) -> None:
    """Remove events that have left the window from the bottom of each stack."""
    for times, numbers in stacks.values():
        gone = bisect_left(times, since)
        if gone:
            del times[:gone], numbers[:gone]


def _end_sequence(stacks: dict[str, Stack], number: int, rows: Rows) -> None:
    (a_times, a_numbers), (b_times, b_numbers) = stacks["A"], stacks["B"]
    for b_time, b in zip(b_times, b_numbers, strict=True):
        for place in range(bisect_left(a_times, b_time)):
            rows.append((a_numbers[place], b, number))


def _end_negation(stacks: dict[str, Stack], number: int, rows: Rows) -> None:
    (a_times, a_numbers), (d_times, _) = stacks["A"], stacks["D"]
    after = bisect_right(a_times, d_times[-1]) if d_times else 0
    rows.extend((a, number) for a in a_numbers[after:])


def _end_group(stacks: dict[str, Stack], number: int, rows: Rows) -> None:
    (a_times, a_numbers), (b_times, b_numbers) = stacks["A"], stacks["B"]
    for a_time, a in zip(a_times, a_numbers, strict=True):
        group = b_numbers[bisect_right(b_times, a_time) :]
        if group:
            rows.append((a, group, number))


def _end_next(stacks: dict[str, Stack], number: int, rows: Rows) -> None:
    times, numbers = stacks["A"]
    rows.extend((a, number) for a in numbers)
    times.clear()
    numbers.clear()


def _starts(stacks: dict[str, Stack]) -> list[int]:
    """Yield the start of each sequence of A, B and C."""
    a_times, b_times, c_times = (stacks[name][0] for name in "ABC")
    return [
        a_time
        for c_time in c_times
        for b_time in b_times[: bisect_left(b_times, c_time)]
        for a_time in a_times[: bisect_left(a_times, b_time)]
    ]


ENDINGS: dict[Kind, Callable[[dict[str, Stack], int, Rows], None]] = {
    Kind.SEQUENCE: _end_sequence,
    Kind.NEGATION: _end_negation,
    Kind.GROUP: _end_group,
    Kind.NEXT: _end_next,
}
