"""A number of events, or a file of sensor readings, in, events like those of the Intel lab out: class, mote, distance.

Section 4.1 of the CPR thesis: the class of a reading is the change of temperature since the mote's last one, in ranges
of 20 degrees; its score is the distance of the mote from (0, 0). A file may be of readings that seldom change so much:
there ranges are as wide as nine of ten changes are, which gives classes the thesis's kind of frequencies.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

BASE = 3e-3  # f_base of section 4.2
SHARES = {"EG": 10, "EH": 89, "EI": 70, "EJ": 89, "EK": 10, "EL": 10, "EM": 3, "EN": 1, "EO": 10}
MOTES = 54
CLASSES = "ABCDEFGHIJKLMNOPQ"  # table 4.1, from -160 degrees on; EI is no change
COMMON = 0.9  # the share of changes that are in EH and EJ


def generated(events: int, seed: int = 1) -> pa.Table:
    """Class by the thesis's frequencies, mote at random."""
    random = np.random.default_rng(seed)
    names = [*SHARES, "other"]
    shares = np.array([*SHARES.values()]) * BASE
    kinds = random.choice(len(names), events, p=[*shares, 1 - shares.sum()])
    motes = random.integers(0, MOTES, events)
    return _table(pa.array(names).take(pa.array(kinds)), motes, _distances(random)[motes])


def from_file(path: Path, locations: Path | None = None) -> pa.Table:
    """Readings of a Parquet file with `moteid` and `temperature`, in its order; `locations` has lines of mote, x, y."""
    table = pq.read_table(path, columns=["moteid", "temperature"])
    motes = np.asarray(table.column("moteid"), np.int64)
    degrees = np.asarray(table.column("temperature"), np.float64)
    order = np.argsort(motes, kind="stable")
    change = np.zeros(motes.size)
    change[order[1:]] = np.where(motes[order[1:]] == motes[order[:-1]], np.diff(degrees[order]), 0.0)
    change = np.nan_to_num(change)
    width = float(np.quantile(np.abs(change[change != 0]), COMMON)) if change.any() else 1.0
    below = np.clip(np.floor(change / width).astype(np.int64) + 8, 0, 7)  # EH is the range before 0
    above = np.clip(np.ceil(change / width).astype(np.int64) + 8, 9, 16)  # EJ is the range after 0
    number = np.where(change < 0, below, np.where(change > 0, above, 8))
    kinds = pa.array([f"E{letter}" for letter in CLASSES]).take(pa.array(number))
    if locations is None:
        distance = _distances(np.random.default_rng(1))[motes % MOTES]
    else:
        known = {int(mote): np.hypot(x, y) for mote, x, y in np.loadtxt(locations)}
        distance = np.array([known.get(int(mote), 0.0) for mote in range(int(motes.max()) + 1)])[motes]
    return _table(kinds, motes, distance)


def _distances(random: np.random.Generator) -> np.ndarray:
    return np.sqrt((random.random((MOTES, 2)) ** 2).sum(axis=1)) * 40


def _table(kinds: pa.Array, motes: np.ndarray, distance: np.ndarray) -> pa.Table:
    return pa.table({"t": np.arange(motes.size), "kind": kinds, "moteid": motes, "distance": distance})
