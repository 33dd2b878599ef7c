"""Test syntax trees of representative queries against goldens."""

from __future__ import annotations

import pytest

from golden import check_golden, dump_syntax
from language.seed_queries import CARD_PURCHASES, NESTED
from streamsift.language import parse

QUERIES = {
    "card_purchases": CARD_PURCHASES,
    "hospital": NESTED[0],
    "precedence": "Google; Microsoft[3] AND Del | Intel; !Oracle; Sun",
    "aggregation": "PATTERN SEQ(A, B, C) AGG SUM(C.weight) AS w, COUNT GROUP BY id WITHIN 10 s EXCLUSIVE UPDATE 5 s",
    "kleene": "PATTERN A+ a; B b*; C[3] WHERE COUNT(a) > 2 AND AVG(b.x) < 3 WITHIN 20 EVENTS EMIT EACH",
    "chain": "A; B; C WHERE A.id = B.id = C.id AND A.x <> B.x",
    "same_attribute": "SEQ(A, !AND(B, C, [n]), D, [id]) PARTITION BY s",
    "arithmetic": "A WHERE -A.x ^ 2 + 3 * (A.n - 1) % 2 >= 1.50 / A.n",
    "predicates": "A WHERE NOT A.b OR A.x IN (1, 2) AND A.n NOT BETWEEN 1 AND 5 OR A.s LIKE 'x%' AND A.s IS NULL",
    "classes": "ANY; Cheap c; `ANY` other WITH Cheap = (price < 3 AND kind = 'sale'), Dear AS (price > 100)",
    "literals": "A WHERE A.time > TIMESTAMP '2024-05-01' AND A.d < 5 min AND A.s = 'it''s' AND A.b = TRUE",
    "ranking": "A; B PREF MAX[e = A.x] AND MIN[B.t - A.t] MERGE avg RETURN TOP 3 A, B.x + 1 AS y",
    "brackets": "{[(A; B) & C] | D}; !{E; F}; G WITHIN 5",
    "keywords_as_names": "SEQ(Return return, Update `update`, `AND` `or`) WHERE `update`.where = `or`.and",
}


@pytest.mark.parametrize("name", QUERIES)
def test_parse_tree(name: str) -> None:
    query = QUERIES[name].strip()
    check_golden(f"parse/{name}.txt", f"{query}\n\n{dump_syntax(parse(query))}")
