"""Collect the labeled rows of matches in arrays."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from streamsift.runtime.arrays.dtypes import Bool, Int64
from streamsift.runtime.resources import reserve


def collected(values: pa.Array, kept: Bool, first: Int64, end: Int64) -> pa.Array:
    """Return the kept values first[i] to end[i] of each result row as an array; null over no rows."""
    before = np.concatenate(([0], np.cumsum(kept)))
    values = values.filter(pa.array(kept))
    begins, sizes = before[first], before[end] - before[first]
    offsets = np.concatenate(([0], np.cumsum(sizes)))
    reserve(int(offsets[-1]) * 16, "arrays of the rows of matches", "collect FINAL arrays, or fewer rows")
    places = np.arange(offsets[-1]) - np.repeat(offsets[:-1] - begins, sizes)
    absent = end <= first
    starts = pa.array(offsets.astype(np.int32), mask=np.append(absent, False))
    return pa.ListArray.from_arrays(starts, values.take(pa.array(places)))
