"""Generate events like those of the Intel lab, or read them from a file: class, mote, distance.

Section 4.1 of the CPR thesis: the class of a reading is the change of temperature since the mote's last reading, in
ranges of 20 degrees; its score is the distance of the mote from (0, 0). Readings of a file may change less. Their
ranges are then as wide as 90 % of the changes, which gives classes with frequencies like those of the thesis.
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
    """Return events with the class frequencies of the thesis and random motes."""
    random = np.random.default_rng(seed)
    names = [*SHARES, "other"]
    shares = np.array([*SHARES.values()]) * BASE
    kinds = random.choice(len(names), events, p=[*shares, 1 - shares.sum()])
    motes = random.integers(0, MOTES, events)
    return _table(pa.array(names).take(pa.array(kinds)), motes, _distances(random)[motes])


def from_file(path: Path, locations: Path | None = None, degrees: float | None = None) -> pa.Table:
    """Read a Parquet file with `moteid` and `temperature`, in its order; `locations` has lines of mote, x, y.

    `degrees` is the width of a class; by default, it is as wide as 90 % of the changes.
    """
    table = pq.read_table(path, columns=["moteid", "temperature"])
    motes = np.asarray(table.column("moteid"), np.int64)
    temperature = np.asarray(table.column("temperature"), np.float64)
    order = np.argsort(motes, kind="stable")
    change = np.zeros(motes.size)
    change[order[1:]] = np.where(motes[order[1:]] == motes[order[:-1]], np.diff(temperature[order]), 0.0)
    change = np.nan_to_num(change)
    width = degrees or (float(np.quantile(np.abs(change[change != 0]), COMMON)) if change.any() else 1.0)
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


def busiest(table: pa.Table, events: int, kind: str) -> pa.Table:
    """Return the stretch of readings of the given length that has the most events of a class."""
    seen = np.cumsum(table.column("kind").to_numpy(zero_copy_only=False) == kind)
    counts = seen[events:] - seen[:-events]
    return table.slice(int(counts.argmax()) + 1 if counts.size else 0, events)


def _distances(random: np.random.Generator) -> np.ndarray:
    return np.sqrt((random.random((MOTES, 2)) ** 2).sum(axis=1)) * 40


def _table(kinds: pa.Array, motes: np.ndarray, distance: np.ndarray) -> pa.Table:
    return pa.table({"t": np.arange(motes.size), "kind": kinds, "moteid": motes, "distance": distance})
