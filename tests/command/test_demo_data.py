"""The demo's data: fixed by its seed, in order of time, of the size and types asked for, with the stories in it."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest

from streamsift.command.demo_data import FIRST_CARD, STEPS, SYMBOLS, hospital, purchases, ticks

TIMESTAMP = pa.timestamp("us", tz="UTC")
SCHEMAS = {
    hospital: pa.schema(
        {
            "ts": TIMESTAMP,
            "kind": pa.string(),
            "id": pa.int64(),
            "ins_type": pa.string(),
            "room": pa.string(),
            "temperature": pa.float64(),
        }
    ),
    purchases: pa.schema(
        {
            "ts": TIMESTAMP,
            "ccid": pa.int64(),
            "brand": pa.string(),
            "amount": pa.decimal128(10, 2),
            "city": pa.string(),
            "channel": pa.string(),
        }
    ),
    ticks: pa.schema({"ts": TIMESTAMP, "symbol": pa.string(), "price": pa.float64(), "volume": pa.int64()}),
}

Generator = Callable[[int, int], pa.Table]
each_generator = pytest.mark.parametrize("generate", SCHEMAS, ids=lambda generate: generate.__name__)


@each_generator
@pytest.mark.parametrize("rows", [0, 1, 2, 7, 25, 499, 500, 1601, 20_000])
def test_size_schema_and_order(generate: Generator, rows: int) -> None:
    table = generate(rows, 1)
    table.validate(full=True)
    assert table.schema == SCHEMAS[generate]
    assert table.num_rows == rows
    assert all(column.null_count == 0 for column in table.columns)
    assert np.all(np.diff(table["ts"].cast(pa.int64()).to_numpy()) >= 0)


@each_generator
def test_the_seed_decides(generate: Generator) -> None:
    assert generate(3000, 5).equals(generate(3000, 5))
    assert not generate(3000, 5).equals(generate(3000, 6))


@each_generator
def test_negative_size_is_refused(generate: Generator) -> None:
    with pytest.raises(ValueError, match="must not be negative"):
        generate(-1, 0)


def test_instruments_go_through_the_steps_in_order_and_skip_some() -> None:
    table = hospital(20_000, 3)
    assert set(table["kind"].to_pylist()) == set(STEPS)
    one = table.filter(pc.equal(table["id"], 1000))
    steps = [STEPS.index(kind) for kind in one["kind"].to_pylist()]
    # Within a cycle the steps only go forward; a cycle that ends in Operating is followed by Recycle.
    assert all(later > earlier or (earlier, later) == (7, 0) for earlier, later in pairwise(steps))
    operated, disinfected = (pc.sum(pc.equal(table["kind"], kind)).as_py() for kind in ("Operating", "Disinfection"))
    assert 0.90 * operated < disinfected < operated
    assert pc.count_distinct(one["ins_type"]).as_py() == 1


def test_card_numbers_need_64_bits() -> None:
    cards = np.unique(purchases(20_000, 3)["ccid"].to_numpy())
    assert cards.min() >= FIRST_CARD > 2**53
    assert len(np.unique(cards.astype(np.float64))) < len(cards)


def test_bursts_of_fraud_are_small_small_large_in_other_cities() -> None:
    table = purchases(20_000, 3)
    frame = table.to_pandas().sort_values(["ccid", "ts"], kind="stable")
    large = frame[frame["amount"] >= 800]
    found = 0
    for row in large.itertuples():
        same_card = frame[(frame["ccid"] == row.ccid) & (frame["ts"] < row.ts) & (frame["amount"] <= 5)]
        recent = same_card[row.ts - same_card["ts"] <= np.timedelta64(15, "m")]
        found += len(recent) >= 2 and row.city not in set(recent["city"])
    assert found >= 20_000 // 500 * 0.9


def test_ticks_share_times_and_walk() -> None:
    table = ticks(20_000, 3)
    assert set(table["symbol"].to_pylist()) == set(SYMBOLS)
    assert pc.count_distinct(table["ts"]).as_py() < 0.8 * table.num_rows
    one = table.filter(pc.equal(table["symbol"], "MSFT"))["price"].to_numpy()
    assert np.abs(np.diff(np.log(one))).max() < 0.01
    assert pc.min(table["volume"]).as_py() >= 100
