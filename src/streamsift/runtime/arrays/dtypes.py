"""Name the types of the arrays that kernels take, and the codes with a meaning of their own."""

from __future__ import annotations

from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

UInt8 = NDArray[np.uint8]

Int8 = NDArray[np.int8]

Int32 = NDArray[np.int32]

Int64 = NDArray[np.int64]

Float64 = NDArray[np.float64]

Times = Int64 | Float64  # one kernel each for integers and doubles

Bool = NDArray[np.bool_]

Places = TypeVar("Places", Int32, Int64)

UNKNOWN = np.iinfo(np.int64).min  # the code of null and NaN: no comparison with it holds

LARGEST = np.iinfo(np.int64).max

NO_LIMIT = np.iinfo(np.int32).max  # no place or position is larger
