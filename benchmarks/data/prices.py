"""Generate prices: random walks, and quotes every five seconds that rarely move."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

STOCKS, SECONDS_OF_QUOTES, QUOTE_S = 800, 1_905, 5
QUOTES = STOCKS * SECONDS_OF_QUOTES // QUOTE_S
MOVES = 0.25  # the share of quotes that change the price


def walks(classes: int, times: int, seed: int = 1) -> pa.Table:
    """Return one event per class and time; a price moves by at most 5 and stays between 0 and 100."""
    random = np.random.default_rng(seed)
    price = random.uniform(0, 100, classes)
    prices = np.empty((times, classes))
    for moment in range(times):
        prices[moment] = price
        price = (price + random.uniform(-5, 5, classes)).clip(0, 100)
    names = pa.array([f"name{number + 1}" for number in range(classes)])
    return pa.table(
        {
            "t": np.repeat(np.arange(times), classes),
            "name": names.take(pa.array(np.tile(np.arange(classes), times))),
            "price": prices.round(2).ravel(),
        }
    )


def quotes(seed: int = 1) -> pa.Table:
    """Return a quote per stock every five seconds, in cents; a price moves by at most three cents."""
    random = np.random.default_rng(seed)
    times = SECONDS_OF_QUOTES // QUOTE_S
    moves = random.choice([-0.03, -0.02, -0.01, 0.01, 0.02, 0.03], (times, STOCKS)) * (
        random.random((times, STOCKS)) < MOVES
    )
    prices = (random.uniform(5, 30, STOCKS) + np.cumsum(moves, axis=0)).clip(0.01, None).round(2)
    codes = pa.array([str(600_000 + number) for number in range(STOCKS)])
    return pa.table(
        {
            "t": np.repeat(np.arange(times) * QUOTE_S, STOCKS),
            "code": codes.take(pa.array(np.tile(np.arange(STOCKS), times))),
            "price": prices.ravel(),
        }
    )
