"""How times are taken and shown: in turns, all of them kept, whatever module they come from."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from benchmarks.detect import throughput
from benchmarks.harness.clock import Clock, Taken
from benchmarks.harness.experiment import DEFAULTS, Experiment, Settings, Side
from benchmarks.harness.measure import Measured, Times
from benchmarks.harness.turns import FILL_S, MOST_ROUNDS, in_turns, medians, sampled
from benchmarks.registry import QUICK, SLOW, as_measured, module_of
from benchmarks.report.drawing import is_there, panels
from benchmarks.report.figures import draw
from benchmarks.report.findings import Finding, gains
from benchmarks.report.measurement import Measurement
from benchmarks.report.paper_figures import Panel, draw_panel, panels_of
from benchmarks.report.paper_sections import others, papers


def fake(order: list[str], name: str, wall_s: float, cpu_s: float = 0.0) -> Callable[[], Taken]:
    def run() -> Taken:
        order.append(name)
        return Taken(wall_s, cpu_s)

    return run


def test_another_contender_begins_each_round() -> None:
    order: list[str] = []
    in_turns({name: fake(order, name, 1.0) for name in "abc"}, Settings(repetitions=3))
    assert "".join(order) == "abc" + "bca" + "cab"


def test_short_runs_are_repeated_until_they_have_filled_some_time() -> None:
    order: list[str] = []
    taken = in_turns({name: fake(order, name, FILL_S / 16) for name in "ab"}, Settings(repetitions=3))
    assert len(taken["a"]) == len(taken["b"]) == 8
    assert len(in_turns({"a": fake(order, "a", 0.0)}, Settings())["a"]) == MOST_ROUNDS


def test_a_slow_contender_stops_after_its_budget_and_the_others_go_on() -> None:
    order: list[str] = []
    runs = {"fast": fake(order, "fast", 1.0), "slow": fake(order, "slow", 25.0)}
    taken = in_turns(runs, Settings(repetitions=7, budget_s=30.0))
    assert len(taken["fast"]) == 7
    assert len(taken["slow"]) == 2
    assert len(in_turns({"slow": fake(order, "slow", 99.0)}, Settings(repetitions=7))["slow"]) == 1


def test_all_are_warm_before_a_time_is_taken_unless_they_have_run_already() -> None:
    calls: list[str] = []
    runs = {name: (lambda name=name: calls.append(name)) for name in "ab"}
    sampled(runs, Settings(repetitions=MOST_ROUNDS))
    assert calls[:4] == ["a", "b", "a", "b"]
    assert len(calls) == 2 * (MOST_ROUNDS + 1)
    calls.clear()
    samples = sampled(runs, Settings(repetitions=MOST_ROUNDS), warm=True)
    assert len(calls) == 2 * MOST_ROUNDS
    assert {name: len(each) for name, each in samples.items()} == {"a": MOST_ROUNDS, "b": MOST_ROUNDS}


def test_the_clock_of_the_settings_is_the_one_that_counts() -> None:
    ticks = iter(range(1000))
    by_cpu = sampled({"a": lambda: None}, Settings(clock=Clock.CPU), cpu=lambda: float(next(ticks)))
    by_wall = sampled({"a": lambda: None}, Settings(), cpu=lambda: float(next(ticks)))
    assert medians(by_cpu) == {"a": 1.0}
    assert medians(by_wall)["a"] < 1.0


def test_a_measurement_keeps_all_samples_and_a_number_is_one() -> None:
    found = Measurement("w", 10, {"ours": (1.0, 2.0, 9.0), "DuckDB": 4.0}, stopped={"Spark SQL": 60.0})
    assert found.medians == {"ours": 2.0, "DuckDB": 4.0}
    assert found.ratio == 2.0
    assert found.summary == "2.0x the fastest other engine"
    measured = as_measured(found)
    assert [(times.side, times.seconds) for times in measured.times] == [
        (Side.OURS, (1.0, 2.0, 9.0)),
        (Side.RIVAL, (4.0,)),
    ]
    assert measured.skipped[0].reason == "stopped after 60 s"


def test_one_disturbed_run_of_many_is_no_spread() -> None:
    many = Times("a", Side.OURS, (*[1.0] * 19, 50.0))
    assert many.band == (1.0, 1.0)
    assert Times("a", Side.OURS, (1.0, 1.0, 50.0)).band == (1.0, 50.0)


def test_the_default_seed_is_every_generators_own() -> None:
    assert DEFAULTS.seeded(5) == 5
    assert replace(DEFAULTS, seed=3).seeded(5) == 7
    assert replace(DEFAULTS, scale=0.001).scaled(100) == 1


@pytest.mark.parametrize("name", [*QUICK, *SLOW])
def test_every_benchmark_takes_settings(name: str) -> None:
    module = module_of(name)
    if not isinstance(getattr(module, "EXPERIMENT", None), Experiment):
        first = next(iter(inspect.signature(module.main).parameters.values()))
        assert (first.name, first.default) == ("settings", DEFAULTS)


def test_a_module_runs_at_a_scale_and_keeps_as_many_samples_as_it_is_asked_for() -> None:
    found = throughput.main(Settings(scale=0.001, repetitions=MOST_ROUNDS, seed=2))
    assert found[0].rows == throughput.EVENTS // 1000
    assert {len(each) for measurement in found for each in measurement.samples.values()} == {MOST_ROUNDS}


# --- pages and pictures ----------------------------------------------------------------------------------------------


def cases(*workloads: str, unit: str = "seconds") -> list[Measured]:
    times = (Times("condense=on", Side.OURS, (0.1, 0.2, 0.3)), Times("condense=off", Side.OURS, (0.4,)))
    return [Measured(workload, 1, 1, times, unit=unit) for workload in workloads]


def finding(workloads: str) -> Finding:
    return Finding("*Paper*", "figure 1", "something", "b", workloads, gains(1, "condense=off", "condense=on"))


def test_what_varies_along_an_axis_is_told_by_names() -> None:
    measured = cases("figure 1: window 1,000 ms", "figure 1: window 20 ms")
    (panel,) = panels_of(finding("figure 1"), {"b": measured})
    assert (panel.along, panel.points, panel.is_line) == ("window … ms", (20.0, 1000.0), True)
    names = cases("figure 1: S7; S8, window 5", "figure 1: S10; S11, window 5")
    (panel,) = panels_of(finding("figure 1"), {"b": names})
    assert (panel.along, panel.points, panel.is_line) == ("window 5", ("S7; S8", "S10; S11"), False)


def test_another_number_that_varies_makes_panels() -> None:
    measured = cases("window 5, 10 events", "window 9, 10 events", "window 5, 20 events", "window 9, 20 events")
    panels = list(panels_of(finding("window"), {"b": measured}))
    assert [panel.along for panel in panels] == ["window …, 10 events", "window …, 20 events"]
    by_query = replace(finding("window"), queries_are_contenders=True)
    assert [panel.points for panel in panels_of(by_query, {"b": measured[:1]})] == [("condense=on", "condense=off")]


def test_a_paper_has_a_section_with_its_picture_and_nothing_measured_is_left_out(tmp_path: Path) -> None:
    measured = {"condensed": cases("window 5", "window 10", "another")}
    pictures = {path.stem: path for path in draw(measured, tmp_path)}
    assert list(pictures) == ["condensed"]
    assert ">figure 8a<" in pictures["condensed"].read_text()
    page = "\n".join(papers(measured, pictures))
    assert f"![condensed]({pictures['condensed']})" in page
    assert "5: condense=on 200 ms ±50%; condense=off 2.00×<br>10: condense=on" in page
    assert "another" not in page
    assert "| another | condense=on 200 ms ±50%; condense=off 2.00× |  |" in "\n".join(others(measured))


@pytest.mark.parametrize(("slowest", "has_bars"), [(1.0, True), (100.0, False)])
def test_bars_start_at_zero_so_a_log_axis_has_none(slowest: float, has_bars: bool) -> None:
    assert is_there()
    _, (axis,) = panels(1, 1, 3.0)
    series = {"on": {"a": Times("on", Side.OURS, (0.5,))}, "off": {"a": Times("off", Side.OURS, (slowest,))}}
    draw_panel(axis, Panel("figure 1", "workload", "seconds", ("a",), series))
    assert bool(axis.patches) == has_bars
    assert axis.get_yscale() == ("linear" if has_bars else "log")
