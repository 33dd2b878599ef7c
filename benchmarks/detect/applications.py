"""Measure one query for each kind of data in the papers: trades, walks, quotes, sensors, ratings, clicks, purchases.

Each query runs with the default strategy and with another one, which must return the same rows.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

import streamsift as ss
from benchmarks.data import PAPERS
from benchmarks.detect.condensed import query_2, query_3
from benchmarks.harness.answers import answer_of_table
from benchmarks.harness.experiment import Contender, Experiment, Settings, Side, Workload, in_process

EVENTS = 100_000


@dataclass(frozen=True, slots=True)
class Case:
    """A query on one kind of data, and a strategy other than the default."""

    data: str
    asks: str
    query: str
    time: str
    type: str | None
    other: dict[str, str]
    events: int = EVENTS


def numbers(query: str, *variables: str) -> str:
    """Return the query with the numbers of a match's events instead of the events."""
    items = ", ".join(f"{variable}.n AS n{number}" for number, variable in enumerate(variables))
    return f"{query.partition(' RETURN ')[0]} RETURN {items}"


CASES = (
    Case(
        "stock trades",
        "three rising prices",
        numbers("SEQ(DELL a, IPIX b, AMAT c) WHERE a.price < b.price AND b.price < c.price WITHIN 50 ms", *"abc"),
        "ts",
        "symbol",
        {"plan": "right"},
    ),
    Case("random walk", "a price above later ones", numbers(query_2(4, 5), "T1", "T4"), "t", None, {"condense": "on"}),
    Case("quotes", "one stock overtakes another", numbers(query_3(15), "T1", "T4"), "t", None, {"condense": "off"}),
    Case(
        "lab sensors",
        "the ten farthest sequences of each window",
        "SEQ(EG a, EH b, EJ c) WITHIN 500 UPDATE 200 PREF MAX[a.distance + b.distance + c.distance] "
        "RETURN TOP 10 a.n AS a, b.n AS b, c.n AS c",
        "t",
        "kind",
        {"rank": "k-ssp"},
    ),
    Case(
        "music ratings",
        "groups of ratings",
        "PATTERN A; B+; C; D WITHIN 5000 RETURN A.n AS a, COUNT(B) AS b, C.n AS c, D.n AS d",
        "t",
        "kind",
        {"plan": "right"},
    ),
    Case(
        "web clicks",
        "carts that are left",
        "SEQ(View v, Cart c, !OR(Buy b, Remove r), Leave l) WHERE [visitor] WITHIN 30 min RETURN v.n AS v, l.n AS l",
        "ts",
        "action",
        {"cache": "off"},
    ),
    Case(
        "web clicks",
        "sales of each item in an hour",
        "SEQ(View v, Cart c, Buy b) WHERE [visitor] GROUP BY item AGG COUNT WITHIN 1 hour UPDATE 10 min",
        "ts",
        "action",
        {"strategy": "detect"},
    ),
    Case(
        "card purchases",
        "small, small, large in three cities",
        "SEQ(ANY a, ANY b, ANY c) WHERE [ccid] AND a.amount < 5 AND b.amount < 5 AND c.amount > 500 "
        "AND a.city != b.city AND b.city != c.city WITHIN 30 min RETURN a.n AS a, b.n AS b, c.n AS c",
        "ts",
        None,
        {"plan": "right"},
    ),
)


def workloads(settings: Settings) -> Iterator[Workload]:
    for case in CASES:
        table = PAPERS[case.data](settings.scaled(case.events), settings.seed)
        table = table.append_column("n", pa.array(np.arange(table.num_rows)))
        name = ", ".join(f"{name}={value}" for name, value in case.other.items())
        contenders = (_contender("streamsift", case, table, {}), _contender(name, case, table, case.other))
        yield Workload(f"{case.data}: {case.asks}", table.num_rows, contenders, query=case.query)


def _contender(name: str, case: Case, table: pa.Table, choices: dict[str, Any]) -> Contender:
    def run() -> pa.Table:
        return ss.query(case.query).run_local(table, time=case.time, type=case.type, **choices)

    def integers(result: pa.Table) -> pa.Table:
        kept = [field.name for field in result.schema if field.name not in ("score", "objective_1")]
        return result.select(kept).cast(pa.schema([(each, pa.int64()) for each in kept]))

    return in_process(
        name, Side.OURS, run, lambda result: answer_of_table(integers(result), integers(result).column_names)
    )


EXPERIMENT = Experiment("applications", (__doc__ or "").splitlines()[0], workloads)
