"""Find the events whose type is one of the class names of a query."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa
from numba import njit

from streamsift.runtime.arrays.dtypes import Int32, UInt8
from streamsift.runtime.expressions.columns import nulls


@njit(cache=True, nogil=True)
def _find_names(
    offsets: Int32, data: UInt8, name_offsets: Int32, letters: UInt8, buckets: Int32, chain: Int32
) -> tuple[Int32, Int32]:
    """The texts that are one of the names: (their numbers, ascending; the number of the name of each).

    Texts and names are UTF-8 end to end, text i = data[offsets[i]:offsets[i + 1]]; no name is empty. A text's mark is
    (31 first byte + 7 last byte + length) mod 256; buckets [256] has a name of that mark or -1, chain [names] the next.
    """
    texts = np.empty(offsets.size - 1, np.int32)
    count = 0
    # First by mark alone, without a branch to mispredict: a text that is not kept is overwritten by the next.
    for i in range(texts.size):
        length = offsets[i + 1] - offsets[i]
        first = int(data[min(offsets[i], data.size - 1)])
        last = int(data[max(offsets[i + 1] - 1, 0)])
        texts[count] = i
        count += buckets[(31 * first + 7 * last + length) & 255] >= 0
    codes = np.empty(count, np.int32)
    kept = 0
    for place in range(count):
        i = texts[place]
        start = offsets[i]
        length = offsets[i + 1] - start
        code = -1
        if length > 0:
            code = buckets[(31 * int(data[start]) + 7 * int(data[start + length - 1]) + length) & 255]
        while code >= 0:
            name = name_offsets[code]
            same = 0
            if name_offsets[code + 1] - name == length:
                while same < length and letters[name + same] == data[start + same]:
                    same += 1
                if same == length:
                    break
            code = chain[code]
        texts[kept] = i
        codes[kept] = code
        kept += code >= 0
    return texts[:kept], codes[:kept]


def find_names(names: Sequence[str], texts: pa.Array) -> tuple[Int32, Int32]:
    """The rows whose text is one of `names` (none of them empty), and the number of its name for each."""
    encoded = [name.encode() for name in names]
    buckets, chain = np.full(256, -1, np.int32), np.full(len(names), -1, np.int32)
    for number, name in enumerate(encoded):
        mark = (31 * name[0] + 7 * name[-1] + len(name)) & 255
        chain[number], buckets[mark] = buckets[mark], number
    _, offsets, data = texts.buffers()
    if data is None or data.size == 0:
        return np.empty(0, np.int32), np.empty(0, np.int32)
    rows, numbers = _find_names(
        np.frombuffer(offsets, np.int32, count=len(texts) + 1, offset=texts.offset * 4),
        np.frombuffer(data, np.uint8),
        np.cumsum([0, *map(len, encoded)], dtype=np.int32),
        np.frombuffer(b"".join(encoded), np.uint8),
        buckets,
        chain,
    )
    missing = nulls(texts)
    if missing is not None:
        keep = ~missing[rows]
        rows, numbers = rows[keep], numbers[keep]
    return rows, numbers
