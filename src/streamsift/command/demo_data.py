"""Generate event tables: hospital instruments, card purchases and stock trades.

Contract: the same rows and seed give the same table, with the same NumPy version; times are ascending; no value is null
(checked by tests/command/test_demo_data.py).
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
import pyarrow as pa

START_US = 1_714_521_600_000_000  # 2024-05-01 00:00:00 UTC
MILLISECOND_US = 1_000
MINUTE_US = 60_000_000
HOUR_US = 60 * MINUTE_US

Ints = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]

# --- hospital instruments --------------------------------------------------------------------------------------

STEPS = ("Recycle", "Washing", "Sharpening", "Disinfection", "Drying", "Checking", "Relabeling", "Operating")
# The probability of a step in a cycle. The demo looks for missed disinfections and checks.
STEP_PROBABILITY = np.array([1.0, 1.0, 0.6, 0.97, 0.96, 0.97, 0.95, 1.0])
STEP_MEAN_MINUTES = np.array([95.0, 6.0, 7.0, 9.0, 8.0, 4.0, 2.0, 10.0])  # since the previous step
STEP_CELSIUS = np.array([21.0, 60.0, 22.0, 93.0, 75.0, 21.0, 21.0, 20.0])
STEP_CELSIUS_SPREAD = np.array([0.8, 3.0, 1.0, 1.5, 4.0, 0.8, 0.8, 0.5])
STEP_ROOMS = 3
INSTRUMENT_TYPES = ("surgery", "dental", "orthopedic", "eye")
INSTRUMENT_TYPE_SHARE = (0.4, 0.25, 0.2, 0.15)


def hospital(rows: int, seed: int) -> pa.Table:
    """Return events of instruments between operations: ts, kind, id, ins_type, room, temperature.

    Every instrument repeats `STEPS`, in about two hours per cycle, and sometimes skips a step.
    """
    rng = _generator(rows, seed)
    instruments = int(np.clip(rows // 200, 8, 500))
    # A cycle has 7.4 steps on average; assuming 6, plus spare cycles, always gives enough rows.
    cycles = rows // (6 * instruments) + 5
    shape = (instruments, cycles, len(STEPS))
    taken = rng.random(shape) < STEP_PROBABILITY
    gap_us = rng.gamma(4.0, STEP_MEAN_MINUTES / 4.0, shape) * MINUTE_US * taken
    begin_us = rng.uniform(0, 2 * HOUR_US, (instruments, 1))
    elapsed_us = begin_us + np.cumsum(gap_us.reshape(instruments, -1), axis=1)

    instrument, position = np.nonzero(taken.reshape(instruments, -1))
    time_us = _whole_milliseconds(elapsed_us[instrument, position])
    first = np.argsort(time_us, kind="stable")[:rows]
    instrument, step, time_us = instrument[first], position[first] % len(STEPS), time_us[first]

    instrument_type = rng.choice(len(INSTRUMENT_TYPES), instruments, p=INSTRUMENT_TYPE_SHARE)
    rooms = [f"{name.lower()}-{number}" for name in STEPS for number in range(1, STEP_ROOMS + 1)]
    celsius = rng.normal(STEP_CELSIUS[step], STEP_CELSIUS_SPREAD[step])
    return pa.table(
        {
            "ts": _timestamps(time_us),
            "kind": _names(STEPS, step),
            "id": pa.array(1000 + instrument.astype(np.int64)),
            "ins_type": _names(INSTRUMENT_TYPES, instrument_type[instrument]),
            "room": _names(rooms, step * STEP_ROOMS + rng.integers(0, STEP_ROOMS, rows)),
            "temperature": pa.array(np.round(celsius, 1)),
        }
    )


# --- card purchases --------------------------------------------------------------------------------------------

BRANDS = ("Amberline", "Birchway", "Corvina", "Dunmore", "Elmtree")
CITIES = ("Amsterdam", "Berlin", "Copenhagen", "Dublin", "Lisbon", "Madrid", "Prague", "Vienna")
CHANNELS = ("store", "online", "phone")
CHANNEL_SHARE = (0.7, 0.27, 0.03)
# Adjacent card numbers are equal as doubles, which have 53 bits: comparing them as doubles mixes up cards.
FIRST_CARD = 9_100_000_000_000_000_001
PURCHASE_DAYS = 30
PURCHASES_PER_CARD = 50
HOME_SHARE = 0.95  # of a card's purchases are in its home city
# Weights by hour of the day (UTC): shops are busy at noon and in the evening.
HOUR_WEIGHT = np.array([1, 1, 1, 1, 1, 1, 2, 4, 6, 7, 8, 10, 12, 11, 8, 8, 9, 12, 13, 11, 8, 5, 3, 2], dtype=float)
# Fraud: two small payments that test the card, then a large one, each in another city.
BURST_SIZE = 3
ROWS_PER_BURST = 500


def purchases(rows: int, seed: int) -> pa.Table:
    """Return 30 days of card purchases: ts, ccid, brand, amount, city, channel.

    About 1 row in 170 belongs to a fraud: two small payments and a large one, in three cities within 15 minutes.
    """
    rng = _generator(rows, seed)
    cards = max(8, rows // PURCHASES_PER_CARD)
    bursts = rows // ROWS_PER_BURST
    plain = rows - bursts * BURST_SIZE
    home_city = rng.integers(0, len(CITIES), cards)

    card = rng.integers(0, cards, plain)
    time_us = _time_of_purchase(rng, plain)
    cents = np.clip(rng.lognormal(np.log(2500.0), 0.9, plain), 50, 500_000).astype(np.int64)
    city = np.where(rng.random(plain) < HOME_SHARE, home_city[card], rng.integers(0, len(CITIES), plain))
    channel = rng.choice(len(CHANNELS), plain, p=CHANNEL_SHARE)

    burst_card = rng.integers(0, cards, (bursts, 1)) + np.zeros(BURST_SIZE, dtype=np.int64)
    burst_gap_us = rng.integers(MINUTE_US, 7 * MINUTE_US, (bursts, BURST_SIZE))
    burst_time_us = _time_of_purchase(rng, bursts)[:, None] + np.cumsum(burst_gap_us, axis=1)
    burst_cents = rng.integers([100, 100, 80_000], [500, 500, 300_000], (bursts, BURST_SIZE))
    burst_city = (home_city[burst_card] + np.array([0, 2, 5])) % len(CITIES)
    burst_channel = rng.integers(0, 2, (bursts, BURST_SIZE))

    time_us = _whole_milliseconds(np.concatenate([time_us, burst_time_us.ravel()]))
    order = np.argsort(time_us, kind="stable")
    return pa.table(
        {
            "ts": _timestamps(time_us[order]),
            "ccid": pa.array(FIRST_CARD + np.concatenate([card, burst_card.ravel()])[order]),
            "brand": _names(BRANDS, rng.integers(0, len(BRANDS), rows)),
            "amount": _decimals(np.concatenate([cents, burst_cents.ravel()])[order], pa.decimal128(10, 2)),
            "city": _names(CITIES, np.concatenate([city, burst_city.ravel()])[order]),
            "channel": _names(CHANNELS, np.concatenate([channel, burst_channel.ravel()])[order]),
        }
    )


def _time_of_purchase(rng: np.random.Generator, rows: int) -> Ints:
    """Return times within the 30 days, unsorted, weighted by `HOUR_WEIGHT`."""
    day = rng.integers(0, PURCHASE_DAYS, rows)
    hour = rng.choice(24, rows, p=HOUR_WEIGHT / HOUR_WEIGHT.sum())
    return (day * 24 + hour) * HOUR_US + rng.integers(0, HOUR_US, rows)


# --- stock trades ----------------------------------------------------------------------------------------------

SYMBOLS = (
    *("AAPL", "ADBE", "AMAT", "AMZN", "CSCO", "DELL", "EBAY", "IBM", "INTC", "IPIX"),
    *("MSFT", "NVDA", "ORCL", "QCOM", "QQQ", "RIMM", "SUNW", "TXN", "XLNX", "YHOO"),
)
TIE_SHARE = 0.3  # of the trades have the time of the previous trade
MEAN_GAP_US = 14_000  # between the others: about 100 trades per second
TRADE_VOLATILITY = 0.0004


def ticks(rows: int, seed: int) -> pa.Table:
    """Return trades of 20 stocks, each price a random walk, many at equal times: ts, symbol, price, volume."""
    rng = _generator(rows, seed)
    gap_us = rng.exponential(MEAN_GAP_US, rows) * (rng.random(rows) >= TIE_SHARE)
    # Some stocks are traded 10 times as often as others.
    share = 1.0 / (2.0 + rng.permutation(len(SYMBOLS)))
    symbol = rng.choice(len(SYMBOLS), rows, p=share / share.sum())
    first_price = rng.uniform(10.0, 200.0, len(SYMBOLS))
    walk = _running_sum_by_group(rng.normal(0.0, TRADE_VOLATILITY, rows), symbol)
    lots = 1 + rng.geometric(0.25, rows) * rng.choice([1, 1, 1, 5], rows)
    return pa.table(
        {
            "ts": _timestamps(_whole_milliseconds(np.cumsum(gap_us))),
            "symbol": _names(SYMBOLS, symbol),
            "price": pa.array(np.maximum(np.round(first_price[symbol] * np.exp(walk), 2), 0.01)),
            "volume": pa.array(100 * lots.astype(np.int64)),
        }
    )


def _running_sum_by_group(values: Floats, group: Ints) -> Floats:
    """Return the running sum of values within each group."""
    order = np.argsort(group, kind="stable")
    total = np.cumsum(values[order])
    sizes = np.bincount(group, minlength=1)
    first = np.concatenate([[0], np.cumsum(sizes)[:-1]])
    # Subtract the total of all earlier groups from each member of a group.
    before = np.concatenate([[0.0], total])[first]
    result = np.empty_like(values)
    result[order] = total - np.repeat(before, sizes)
    return result


# --- columns ---------------------------------------------------------------------------------------------------


def _generator(rows: int, seed: int) -> np.random.Generator:
    if rows < 0:
        raise ValueError(f"rows must not be negative: {rows}")
    return np.random.default_rng(seed)


def _whole_milliseconds(time_us: Floats | Ints) -> Ints:
    return time_us.astype(np.int64) // MILLISECOND_US * MILLISECOND_US


def _timestamps(elapsed_us: Ints) -> pa.Array:
    return pa.array(START_US + elapsed_us, type=pa.int64()).cast(pa.timestamp("us", tz="UTC"))


def _names(names: Sequence[str], code: Ints) -> pa.Array:
    return pa.array(names, type=pa.string()).take(pa.array(code))


def _decimals(unscaled: Ints, decimal_type: pa.Decimal128Type) -> pa.Array:
    """Return cents as exact decimals. Arrow stores a decimal as a 128-bit integer, low half first."""
    halves = np.empty((len(unscaled), 2), dtype="<i8")
    halves[:, 0], halves[:, 1] = unscaled, unscaled >> 63
    return pa.Array.from_buffers(decimal_type, len(unscaled), [None, pa.py_buffer(halves)])
