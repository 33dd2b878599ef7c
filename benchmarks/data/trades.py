"""Generate trades in time order from their rate and the shares of symbols: ts, symbol, price."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

SYMBOLS = ["DELL", "IPIX", "AMAT", "QQQ", "INTC", "MSFT", "ORCL", "CSCO", "AAPL", "SUNW", "YHOO", "EBAY"]


def trades_of(events: int, *, per_ms: float = 1.0, shares: list[float] | None = None, seed: int = 3) -> pa.Table:
    """Return trades in time order, `per_ms` per millisecond on average; symbols have the given or equal shares."""
    random = np.random.default_rng(seed)
    symbols = pa.array(SYMBOLS if shares is None else SYMBOLS[: len(shares)])
    drawn = random.choice(len(symbols), events, p=shares)
    ticks = np.sort(random.integers(0, int(events * 1000 / per_ms), events))
    return pa.table(
        {
            "ts": pa.array(ticks, pa.timestamp("us")),
            "symbol": symbols.take(pa.array(drawn)),
            "price": random.integers(1, 200, events) / 4,
        }
    )
