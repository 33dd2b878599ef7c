"""Generate the data of the papers' experiments as pyarrow tables.

`PAPERS` maps names to generators that take an approximate number of events and a seed.
"""

from __future__ import annotations

from collections.abc import Callable

import pyarrow as pa

from benchmarks.data.clicks import clicks
from benchmarks.data.prices import QUOTES, quotes, walks
from benchmarks.data.ratings import POPULATION, ratings
from benchmarks.data.sensors import generated
from benchmarks.data.trades import trades_of
from streamsift.command.demo_data import purchases

WALKING = 4  # classes of the random walk
RATED = sum(POPULATION.values()) / 1_000_000  # the share of records in the four classes

PAPERS: dict[str, Callable[[int, int], pa.Table]] = {
    "stock trades": lambda events, seed: trades_of(events, seed=seed),
    "random walk": lambda events, seed: walks(WALKING, max(1, events // WALKING), seed),
    "quotes": lambda events, seed: quotes(seed).slice(0, min(events, QUOTES)),
    "lab sensors": generated,
    "music ratings": lambda events, seed: ratings(POPULATION, round(events / RATED), seed),
    "web clicks": clicks,
    "card purchases": purchases,
}
