"""Generate the clicks of visitors of a shop in time order: ts, action, visitor, item.

A visitor searches, views items, may put one into the cart, may buy or remove it, and leaves; later the next visit
begins. Each click depends only on the click before it.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa

ACTIONS = ("Search", "View", "Cart", "Remove", "Buy", "Leave")
# One row per action: the probabilities of the next action.
NEXT = np.array(
    [
        [0.15, 0.70, 0.00, 0.00, 0.00, 0.15],
        [0.25, 0.35, 0.20, 0.00, 0.00, 0.20],
        [0.10, 0.25, 0.05, 0.15, 0.30, 0.15],
        [0.30, 0.40, 0.00, 0.00, 0.00, 0.30],
        [0.10, 0.20, 0.00, 0.00, 0.00, 0.70],
        [0.80, 0.20, 0.00, 0.00, 0.00, 0.00],
    ]
)
CLICKS_A_VISITOR = 50
MEAN_GAP_S, MEAN_ABSENCE_S = 20.0, 4 * 3600.0  # between clicks of a visit, between visits
ITEMS = 500
MICROSECONDS = 1_000_000


def clicks(events: int, seed: int = 1) -> pa.Table:
    """Return items with Zipf-distributed frequencies; an item stays the same from View to Buy."""
    random = np.random.default_rng(seed)
    visitors = max(1, -(-events // CLICKS_A_VISITOR))
    action = np.empty((CLICKS_A_VISITOR, visitors), np.int64)
    item = np.empty_like(action)
    now, looked_at = np.full(visitors, ACTIONS.index("Leave")), np.zeros(visitors, np.int64)
    until, popularity = np.cumsum(NEXT, axis=1), np.cumsum(1 / np.arange(1, ITEMS + 1))
    for number in range(CLICKS_A_VISITOR):
        now = (random.random((visitors, 1)) > until[now]).sum(axis=1).clip(max=len(ACTIONS) - 1)
        drawn = np.searchsorted(popularity, random.random(visitors) * popularity[-1])
        looked_at = np.where(now == ACTIONS.index("View"), drawn, looked_at)
        action[number], item[number] = now, looked_at
    comes_back = np.vstack([np.ones((1, visitors), bool), action[:-1] == ACTIONS.index("Leave")])
    gap_s = random.exponential(np.where(comes_back, MEAN_ABSENCE_S, MEAN_GAP_S))
    time_us = (np.cumsum(gap_s, axis=0) * MICROSECONDS).astype(np.int64)
    order = np.argsort(time_us.ravel(), kind="stable")[:events]
    return pa.table(
        {
            "ts": pa.array(time_us.ravel()[order], pa.timestamp("us")),
            "action": pa.array(ACTIONS).take(pa.array(action.ravel()[order])),
            "visitor": np.tile(np.arange(visitors), CLICKS_A_VISITOR)[order],
            "item": item.ravel()[order],
        }
    )
