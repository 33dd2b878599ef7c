"""List columns of text and the types that both engines infer for them."""

from __future__ import annotations

import pyarrow as pa

# The fields of a column and its inferred type.
COLUMNS: dict[str, tuple[list[str | None], pa.DataType]] = {
    "integers": (["1", "-2", "+3"], pa.int64()),
    "bounds of 64 bits": (["-9223372036854775808", "9223372036854775807"], pa.int64()),
    "leading zeros": (["007", "7"], pa.int64()),  # the same number, also on Spark
    "beyond 64 bits": (["18446744073709551614", "18446744073709551615"], pa.decimal128(38, 0)),
    "38 digits": (["9" * 38, "1"], pa.decimal128(38, 0)),
    "39 digits": (["1" + "0" * 38, "1" + "0" * 37 + "1"], pa.string()),
    "fractions": (["0.1", "2.50", "3", ".5", "1."], pa.float64()),
    "doubles in full": (["0.8444218515250481", "1"], pa.float64()),
    "an integer beyond 2^53 and a fraction": (["9007199254740993", "0.5"], pa.decimal128(38, 1)),
    "seconds with nanoseconds": (["1700000000.123456789", "1700000000.123456788"], pa.decimal128(38, 9)),
    "too long for decimals": (["0." + "1" * 39, "0." + "1" * 38 + "2"], pa.string()),
    "exponents": (["1e5", "2E-3", "1"], pa.float64()),
    "long with exponents": (["1.700000000123456717e+09"], pa.float64()),
    "an exponent and an integer beyond 2^53": (["1e5", "9007199254740993"], pa.string()),
    "not numbers": (["NaN", "inf", "-Infinity", "1"], pa.float64()),
    "spaces": ([" 5", "6 "], pa.int64()),
    "hexadecimal": (["0x10", "0x11"], pa.string()),
    "suffixes": (["1.5d", "2f"], pa.string()),
    "booleans": (["true", "FALSE", None], pa.bool_()),
    "booleans and numbers": (["true", "1"], pa.string()),
    "dates": (["2024-01-02", None], pa.date32()),
    "no such day": (["2024-02-30", "2024-01-01"], pa.string()),
    "year 0": (["0000-01-01"], pa.string()),
    "dates and times": (["2024-01-02", "2024-02-03 10:00:00"], pa.timestamp("us")),
    "times": (["2024-01-02T10:00:00.123456", "2024-01-02 10:00"], pa.timestamp("us")),
    "zeros after microseconds": (["2024-01-02T10:00:00.123456000"], pa.timestamp("us")),
    "nanoseconds": (["2024-01-02T10:00:00.000000001", "2024-01-02T10:00:00.000000002"], pa.timestamp("ns")),
    "nanoseconds far away": (["2024-01-02T10:00:00.000000001", "3024-01-02"], pa.string()),
    "zones": (["2024-01-02T10:00:00Z", "2024-01-02T11:00:00+01:00"], pa.timestamp("us", "UTC")),
    "some with zones": (["2024-01-02T10:00:00Z", "2024-01-02T11:00:00"], pa.string()),
    "months": (["2024-01"], pa.string()),
    "clock times": (["12:30:00"], pa.string()),
    "words": (["NULL", "1"], pa.string()),
    "late word": (["1"] * 5000 + ["abc"], pa.string()),
    "empty": ([None, None], pa.null()),
}
