"""Name the array types that kernels take, and their special codes."""

from __future__ import annotations

from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

UInt8 = NDArray[np.uint8]

Int8 = NDArray[np.int8]

Int32 = NDArray[np.int32]

Int64 = NDArray[np.int64]

Float64 = NDArray[np.float64]

Times = Int64 | Float64  # Numba compiles a kernel for each

Bool = NDArray[np.bool_]

Places = TypeVar("Places", Int32, Int64)

UNKNOWN = np.iinfo(np.int64).min  # the code of null and NaN: every comparison with it is false

LARGEST = np.iinfo(np.int64).max

NO_LIMIT = np.iinfo(np.int32).max  # not less than any place or position
