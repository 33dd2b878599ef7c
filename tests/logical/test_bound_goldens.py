"""Test representative bound queries against goldens."""

from __future__ import annotations

import pyarrow as pa
import pytest

from golden import check_golden, dump_bound
from language.seed_queries import CARD_PURCHASES, NESTED
from logical.events import bound
from streamsift.language import parse
from streamsift.logical.binder import bind

QUERIES = {
    "flat": """SEQ(A a, B b, C c) WHERE [id] AND a.x < b.x AND c.Price >= 1.50
WITHIN 10 EXCLUSIVE RETURN a, b.x - a.x AS rise""",
    "with_classes": """Cheap c; Dear d; ANY a
WITH Cheap = (Price < 3.5 AND s LIKE 'x%'), Dear = (price > 100) WITHIN 20 EVENTS""",
    "nested_negation": "SEQ(A a, !SEQ(B b, !C c, D d, b.id = d.id), E e) WHERE c.x > b.x AND a.x > 3 WITHIN 10",
    "disjunction": "A a; (B b | C c; D d) WHERE [id] AND a.x < b.x AND a.x < c.x",
    "kleene": """A a; B+ b; C[3] c WHERE b.x > a.x AND AVG(b.x) > 3 AND COUNT(c) = 3
RETURN a.x, SUM(b.x) AS total, c EMIT EACH""",
    "aggregation": "A; B AGG COUNT, SUM(B.n), AVG(A.x) AS mean PARTITION BY s GROUP BY id WITHIN 10 UPDATE 5",
    "changes": "A; !B; C AGG COUNT AS n WITHIN 5 EVENTS EMIT CHANGES",
    "definitions": """SEQ S1 = A; !B WITHIN 3 EVENTS PARTITION BY id
SEQ S2 = C PREF MAX[e = C.x]
PATTERN S1 & S2 WHERE S1.A.n = S2.C.n AND S2.e > 3 RETURN TOP 2 S1.A, S2.C.x""",
}


@pytest.mark.parametrize("name", QUERIES)
def test_bound_query(name: str) -> None:
    check_golden(f"bound/{name}.txt", f"{QUERIES[name]}\n\n{dump_bound(bound(QUERIES[name], order='seq'))}")


def test_card_purchases() -> None:
    schema = pa.schema(
        [("time", pa.timestamp("s")), ("CCID", pa.int64()), ("brand", pa.string()), ("exp", pa.decimal128(9, 2))]
    )
    query = bind(parse(CARD_PURCHASES), schema, time="time", type="brand")
    check_golden("bound/card_purchases.txt", f"{CARD_PURCHASES.strip()}\n\n{dump_bound(query)}")


def test_hospital() -> None:
    schema = pa.schema(
        [("at", pa.timestamp("us", "UTC")), ("event", pa.string()), ("id", pa.int64()), ("ins_type", pa.string())]
    )
    query = bind(parse(NESTED[0]), schema, time="at", type="event")
    check_golden("bound/hospital.txt", f"{NESTED[0]}\n\n{dump_bound(query)}")
