"""Every join tree, condensed or not, with slices of any length, finds the matches of the oracle."""

from __future__ import annotations

import os
import time
from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, note, settings
from hypothesis import strategies as st

import streamsift as ss
from strategies import bindings, flat_queries, queries, streams
from streamsift.errors import PlanTooLargeError
from streamsift.language import Script, print_script, syntax
from streamsift.physical import DetectPlan
from streamsift.physical.plan.join_trees import Join, JoinLeaf, units_of
from streamsift.physical.plan.options import Condense, PlannerOptions, PlanShape
from streamsift.runtime import match_places, prepare
from streamsift.runtime.detect import adaptive, joins
from streamsift.runtime.detect.adaptive import AdaptiveSearch
from streamsift.runtime.detect.joins import TreeSearch
from streamsift.runtime.detect.relations import Relations
from streamsift.runtime.events.candidates import candidates
from test_generated import DETECTION, SCHEMA, assert_same

EXAMPLES = int(os.environ.get("STREAMSIFT_EXAMPLES", "0"))
LARGE = os.environ.get("STREAMSIFT_HYPOTHESIS") == "large"
CHOICES = st.fixed_dictionaries(
    {
        "plan": st.sampled_from(["auto", "left", "right", "bushy", "inner"]),
        "cache": st.sampled_from(["auto", "on", "off"]),
        "condense": st.sampled_from(["auto", "on", "off"]),
    }
)


@pytest.fixture
def short_slices(monkeypatch: pytest.MonkeyPatch) -> None:
    """Use slices of a few events, and change the tree as soon as another one is cheaper."""
    for name, value in {"SLICE_PLACES": 3, "SLICE_WINDOWS": 0, "CONDENSED_PLACES": 2, "CONDENSED_WINDOWS": 0}.items():
        monkeypatch.setattr(adaptive, name, value)
    monkeypatch.setattr(adaptive, "MARGIN", 1.0)
    # With these low costs, some parts of short streams are condensed and others are not.
    for name in ("CONDENSE_PART_NS", "CONDENSE_EVENT_NS", "CONDENSE_LEFT_NS", "CONDENSE_ALIKE"):
        monkeypatch.setattr(adaptive, name, 0.1)


def counted_by_key(script: Script) -> Script:
    """Replace the window by a count window per key, which ends at a different place for each key."""
    window = syntax.Window(syntax.Duration(4, syntax.Unit.EVENT))
    partition = (syntax.Name(("id",)),)
    return replace(script, statement=replace(script.statement, partition_by=partition, window=window))


DETECTIONS = flat_queries() | queries(max_depth=3, **DETECTION)


@settings(
    max_examples=EXAMPLES or (5_000 if LARGE else 90),
    suppress_health_check=[HealthCheck.function_scoped_fixture],  # it sets constants, the same for all examples
)
@given(DETECTIONS | DETECTIONS.map(counted_by_key), streams(), bindings(), CHOICES)
def test_generated_queries_by_every_tree(
    short_slices: None, script: Script, rows: list[dict[str, Any]], binding: dict[str, str], choices: dict[str, Any]
) -> None:
    note(f"{print_script(script)} {choices}")
    table = pa.Table.from_pylist(rows, SCHEMA)
    try:
        actual = ss.query(print_script(script)).run_local(table, **binding, **choices).to_pylist()
    except ss.BadInputError as refusal:
        assert "64 bits" in str(refusal) or "64-bit" in str(refusal), "only an overflow is no answer"
        return
    assert_same(script, rows, binding, actual)


def stream(kinds: str, seed: int, length: int, **columns: Any) -> pa.Table:
    random = np.random.default_rng(seed)
    return pa.table(
        {
            "t": np.arange(length),
            "kind": random.choice(list(kinds), length),
            "x": random.integers(0, 10, length),
            **columns,
        }
    )


QUERY = "PATTERN SEQ(A a, B b, C c, D d) WHERE a.x < c.x WITHIN 40"


@pytest.mark.parametrize("plan", ["left", "right", "bushy", "inner", "auto"])
@pytest.mark.parametrize("condense", ["on", "off"])
def test_all_shapes_find_the_same(short_slices: None, plan: Any, condense: Any) -> None:
    table = stream("ABCD", 1, 600)
    expected = ss.query(QUERY).run_local(table, time="t", type="kind", plan="left", condense="off")
    found = ss.query(QUERY).run_local(table, time="t", type="kind", plan=plan, condense=condense)
    order = [(name, "ascending") for name in ("a.t", "b.t", "c.t", "d.t")]
    assert expected.num_rows > 1_000
    assert found.flatten().sort_by(order).equals(expected.flatten().sort_by(order))


@pytest.mark.parametrize(
    "pattern",
    [
        "SEQ(ANY a, ANY b, ANY c) {}",
        "SEQ(ANY a, ANY b) {}",
        "AND(ANY a, ANY b) {}",
        "SEQ(ANY a, !ANY n, ANY b) {} AND n.x > a.x",
    ],
)
def test_count_windows_per_key_take_linear_time(pattern: str) -> None:
    """If each search scanned to the end of the stream, 4 times the events would take 16 times as long."""
    table = stream("A", 5, 80_000, key=np.arange(80_000) % 20)
    query = ss.query(f"PATTERN {pattern.format('PARTITION BY key WHERE a.x > b.x + 7')} WITHIN 12 EVENTS")
    seconds = []
    for size in (80_000, 20_000, 80_000):  # the first run compiles kernels
        begin = time.process_time()
        query.run_local(table.slice(0, size), time="t")
        seconds.append(time.process_time() - begin)
    assert seconds[2] < 9 * seconds[1]


LONG = "PATTERN SEQ(A a, B b, C c, D d, E e) {} WITHIN 30"


@pytest.mark.parametrize("where", ["", "WHERE a.x < c.x", "WHERE b.x > 7 AND a.x + b.x > c.x"])
def test_a_block_is_filtered_once_for_each_first_event(short_slices: None, where: str) -> None:
    """The first partial match of a first event may not be its earliest, because comparisons can remove that one."""
    table, query = stream("ABCDE", 3, 500), ss.query(LONG.format(where))
    expected = query.run_local(table, time="t", type="kind", plan="left", condense="off").num_rows
    assert expected > 100
    assert query.run_local(table, time="t", type="kind", plan="bushy").num_rows == expected


@pytest.mark.parametrize("where", ["", "WHERE a.x < e.x", "WHERE b.x < c.x"])
@pytest.mark.parametrize("cut", [500, 100, 7])
def test_outer_events_first_and_then_the_cached_inner_ones(where: str, cut: int) -> None:
    table = stream("ABCDE", 4, 500)
    plan = ss.query(LONG.format(where)).plan(table.schema, "t", "kind", None)
    assert isinstance(plan, DetectPlan)
    (alternative,) = plan.alternatives
    events = prepare(plan.query, table)
    places = candidates(alternative, events)
    search = TreeSearch(alternative, events, places, Relations(alternative), 64)
    outer = Join(Join(JoinLeaf(0), JoinLeaf(3)), JoinLeaf(4))
    cached, again = Join(outer, Join(JoinLeaf(1), JoinLeaf(2))), Join(Join(outer, JoinLeaf(1)), JoinLeaf(2))

    def found(tree: Join) -> list[tuple[int, ...]]:
        slices = ((low, min(low + cut, 500)) for low in range(0, 500, cut))
        return sorted(tuple(m) for low, high in slices for rows in search.matches(tree, low, high) for m in rows.T)

    expected = sorted(tuple(m) for rows in match_places(alternative, events) for m in rows.T)
    assert len(expected) > 100
    assert found(cached) == expected
    assert found(again) == expected


def drifting() -> pa.Table:
    """In the first half, few A and B have equal x; in the second half, few C and D have equal y."""
    random = np.random.default_rng(5)
    half = 20_000
    many, one = random.integers(0, 1_000, half), np.zeros(half, np.int64)
    kinds = random.choice(list("ABCD"), 2 * half)
    return pa.table(
        {
            "t": np.arange(2 * half),
            "kind": kinds,
            "x": np.concatenate([many, one]),
            "y": np.concatenate([one, many]),
        }
    )


DRIFTING = "PATTERN SEQ(A a, B b, C c, D d) WHERE a.x = b.x AND c.y = d.y WITHIN 80"


def test_the_tree_follows_the_selectivities(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(adaptive, "SLICE_PLACES", 2_000)
    searches: list[AdaptiveSearch] = []
    original = AdaptiveSearch.matches

    def logged(self: AdaptiveSearch) -> Any:
        searches.append(self)
        return original(self)

    monkeypatch.setattr(AdaptiveSearch, "matches", logged)
    query, table = ss.query(DRIFTING), drifting()
    rows = query.run_local(table, time="t", type="kind").num_rows
    first, *_, last = (chosen.tree for chosen in searches[0].log)
    assert units_of(first)[0] in (JoinLeaf(0), JoinLeaf(1))
    assert units_of(last)[0] in (JoinLeaf(2), JoinLeaf(3))
    for plan in ("left", "right"):
        assert query.run_local(table, time="t", type="kind", plan=plan).num_rows == rows


def test_following_the_selectivities_builds_fewer_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(adaptive, "SLICE_PLACES", 2_000)
    table = drifting()
    plan = ss.query(DRIFTING).plan(table.schema, "t", "kind", None)
    assert isinstance(plan, DetectPlan)
    (alternative,) = plan.alternatives
    events = prepare(plan.query, table)
    places = candidates(alternative, events)

    def partial_matches(shape: PlanShape) -> tuple[int, int]:
        search = AdaptiveSearch(alternative, events, places, PlannerOptions(plan=shape, condense=Condense.OFF), 1 << 10)
        matches = sum(rows.shape[1] for rows in search.matches())
        rows = ((part, count) for chosen in search.log for part, count in chosen.rows.items())
        return matches, sum(count for part, count in rows if 1 < len(part) < 4)

    found, built = partial_matches(PlanShape.AUTO)
    for shape in (PlanShape.LEFT, PlanShape.RIGHT, PlanShape.BUSHY, PlanShape.INNER):
        matches, more = partial_matches(shape)
        assert matches == found
        assert more > 2 * built, f"{shape} builds {more}"


def test_a_block_that_is_too_large_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(joins, "MAX_KEPT_ROWS", 100)
    with pytest.raises(PlanTooLargeError, match=r"sub-matches of \(c, d\)"):
        ss.query(QUERY).run_local(stream("ABCD", 1, 600), time="t", type="kind", plan="bushy")


def test_analysis_draws_expected_and_built_rows() -> None:
    text = ss.query(QUERY).explain(stream("ABCD", 1, 600), time="t", type="kind", plan="bushy", analyze=True)
    analysed = text.split("Analyzed\n")[1]
    assert "(cached by interval)" in analysed
    assert "expected" in analysed
    assert "built" in analysed


def test_analysis_draws_groups_above_the_joins() -> None:
    table = stream("ABCD", 1, 600)
    found = ss.query("PATTERN A a; B+ b; C c; D[2] d WITHIN 20").explain(table, time="t", type="kind", analyze=True)
    rows = ss.query("PATTERN A a; B+ b; C c; D[2] d WITHIN 20").run_local(table, time="t", type="kind")
    elements = sum(map(len, rows["b"].to_pylist()))
    lines = found.split("Analyzed\n")[1].splitlines()
    groups = lines.index(next(line for line in lines if line.startswith("  groups  expected ")))
    assert lines[groups].endswith(f" rows, built {rows.num_rows:,}")
    assert lines[groups + 1].endswith(f" elements, built {2 * rows.num_rows:,}")
    assert lines[groups + 2].endswith(f" elements, built {elements:,}")


def test_a_choice_must_be_known() -> None:
    with pytest.raises(ss.QueryError, match="invalid value for plan: 'sideways'"):
        ss.query(QUERY).run_local(stream("ABCD", 1, 6), time="t", type="kind", plan="sideways")  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="unknown option `shape`"):
        ss.query(QUERY).run_local(stream("ABCD", 1, 6), time="t", type="kind", shape="left")  # type: ignore[call-arg]


REPEATING = "PATTERN SEQ(A a, B b, C c, D d) WHERE a.x < b.x - 1 AND c.x > d.x + 1 AND a.key = c.key WITHIN 2000"


@pytest.mark.parametrize(("values", "is_condensed"), [(3, True), (1_000_000, False)])
def test_condensing_follows_how_often_values_repeat(values: int, is_condensed: bool) -> None:
    random = np.random.default_rng(7)
    length = 20_000
    kinds = random.choice(list("ABCD"), length, p=[0.49, 0.01, 0.49, 0.01])
    columns = {"x": random.integers(0, values, length), "key": random.integers(0, 200, length)}
    table = stream("ABCD", 7, length, **columns).set_column(1, "kind", pa.array(kinds))
    query = ss.query(REPEATING)
    binding = {"time": "t", "type": "kind"}
    told = query.explain(table, **binding, plan="left", analyze=True)
    assert (", condensed\n" in told) == is_condensed
    expected = query.run_local(table, **binding, plan="left", condense="off")
    found = query.run_local(table, **binding, plan="left")
    order = [(name, "ascending") for name in ("a.t", "b.t", "c.t", "d.t")]
    assert expected.num_rows > 0
    assert found.flatten().sort_by(order).equals(expected.flatten().sort_by(order))
