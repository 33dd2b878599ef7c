"""Kleene groups are built in chunks of matches; chunk boundaries do not change the result."""

from __future__ import annotations

import random

import pyarrow as pa
import pytest

import streamsift as ss
from streamsift.runtime.detect import run


def trades(seed: int) -> pa.Table:
    random.seed(seed)
    rows = 14
    return pa.table(
        {
            "t": sorted(random.randint(0, 12) for _ in range(rows)),
            "kind": [random.choice("ABC") for _ in range(rows)],
            "id": [random.randint(0, 2) for _ in range(rows)],
        }
    )


@pytest.mark.parametrize(
    "text",
    [
        "SEQ(A a, B* b, C* c) WHERE [id] WITHIN 9",
        "SEQ(A* a, B* b) WHERE [id] WITHIN 9",
        "SEQ(A a, B+ b, !C n, C+ c) WITHIN 9",
        "SEQ(A a, B* b, !C n, B* c) WHERE [id] WITHIN 9",
        "SEQ(A+ a, !B n, C* c, A* d) WITHIN 9",
        "AND(A a, B+ b, C+ c) WITHIN 6",
        "AND(ANY+ a, ANY+ b, A x) WITHIN 2",
        "SEQ(A a, AND(B+ b, ANY* c)) WITHIN 3 EMIT EACH",
    ],
)
def test_groups_do_not_depend_on_chunks(text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    query, binding, rows = ss.query(text), {"time": "t", "type": "kind"}, 0
    for seed in range(6):
        whole = query.run_local(trades(seed), **binding)
        rows += whole.num_rows
        for chunk in (1, 2, 5):
            with monkeypatch.context() as patched:
                patched.setattr(run, "CHUNK_MATCHES", chunk)
                parts = query.run_local(trades(seed), **binding)
            assert sorted(map(str, parts.to_pylist())) == sorted(map(str, whole.to_pylist()))
    assert rows
