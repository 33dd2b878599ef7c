"""Express a sequence with negated sequences and a window as SQL self-joins with NOT EXISTS.

There are two formulations. `plain` joins by time alone. `bucketed` is an expert's version for engines that join by
equality: time buckets are one window wide, and every event but the first is in its own bucket and in the one before.
All events of a match therefore meet in the bucket of its first event, and every join is by bucket. SEQ inside SEQ is
flattened.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from enum import StrEnum

from streamsift.language import parse, syntax


class Bucket(StrEnum):
    """SQL for the number of the time bucket that contains an event, per engine."""

    SPARK = "unix_micros(ts) DIV {window_us}"
    DUCKDB = "epoch_us(ts) // {window_us}"


@dataclass(frozen=True, slots=True)
class Sequence:
    """A SEQ of single events, and per event the sequences that must not occur between it and the next."""

    events: tuple[str, ...]
    negated: tuple[tuple[int, tuple[str, ...]], ...]


def sequence_of(text: str) -> Sequence:
    """Return the sequence of a query that is a SEQ of classes, SEQs and negated SEQs."""
    events: list[str] = []
    negated: list[tuple[int, tuple[str, ...]]] = []
    pattern = parse(text).statement.pattern
    assert isinstance(pattern, syntax.Seq)
    for operand in pattern.operands:
        if isinstance(operand, syntax.Not):
            negated.append((len(events) - 1, tuple(_classes(operand.operand))))
        else:
            events += _classes(operand)
    return Sequence(tuple(events), tuple(negated))


def _classes(pattern: syntax.Pattern) -> Iterator[str]:
    if isinstance(pattern, syntax.Event):
        yield pattern.class_name
    else:
        assert isinstance(pattern, syntax.Seq)
        for operand in pattern.operands:
            yield from _classes(operand)


def plain(sequence: Sequence, window_ms: int) -> str:
    return _matches(sequence, window_ms, "(SELECT * FROM trades WHERE symbol = '{}')".format, "")


def bucketed(sequence: Sequence, window_ms: int, bucket: Bucket) -> str:
    number = bucket.format(window_us=window_ms * 1000)
    first, *later = dict.fromkeys((*sequence.events, *(s for _, symbols in sequence.negated for s in symbols)))
    tables = [f"in_{first} AS (SELECT *, {number} AS bucket FROM trades WHERE symbol = '{first}')"]
    for symbol in later:
        copies = "trades, (VALUES (0), (1)) AS copies(back)"
        tables.append(f"in_{symbol} AS (SELECT *, {number} - back AS bucket FROM {copies} WHERE symbol = '{symbol}')")
    return f"WITH {', '.join(tables)}\n{_matches(sequence, window_ms, 'in_{}'.format, '{}.bucket = {}.bucket AND ')}"


def _matches(sequence: Sequence, window_ms: int, source: Callable[[str], str], same_bucket: str) -> str:
    """Return the joins; `same_bucket` is the condition that two tables meet in a bucket, if there are buckets."""
    names = [f"e{number}" for number in range(len(sequence.events))]
    numbers = ", ".join(f"{name}.trade AS trade_{number}" for number, name in enumerate(names))
    text = f"SELECT {numbers}\nFROM {_joined(sequence.events, names, window_ms, source, same_bucket)}"
    conditions = []
    for before, symbols in sequence.negated:
        inner = [f"n{number}" for number in range(len(symbols))]
        between = f"{inner[0]}.ts > {names[before]}.ts AND {inner[-1]}.ts < {names[before + 1]}.ts"
        occurrence = _joined(symbols, inner, window_ms, source, same_bucket)
        where = same_bucket.format(inner[0], names[0]) + between
        conditions.append(f"NOT EXISTS (SELECT 1 FROM {occurrence} WHERE {where})")
    return text + ("\nWHERE " + "\n  AND ".join(conditions) if conditions else "")


def _joined(
    symbols: tuple[str, ...], names: list[str], window_ms: int, source: Callable[[str], str], same_bucket: str
) -> str:
    """Require that the events follow one another, all within the window of the first."""
    text = f"{source(symbols[0])} AS {names[0]}"
    for symbol, before, name in zip(symbols[1:], names, names[1:], strict=False):
        window = f"{name}.ts <= {names[0]}.ts + INTERVAL {window_ms} MILLISECONDS"
        joined = f"{same_bucket.format(name, names[0])}{name}.ts > {before}.ts AND {window}"
        text += f"\n  JOIN {source(symbol)} AS {name} ON {joined}"
    return text
