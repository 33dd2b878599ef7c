"""The harness itself: answers that differ are told apart, times are kept, noise is not taken for a change."""

from __future__ import annotations

import subprocess
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from benchmarks import __main__ as runner
from benchmarks.data.keyed import keyed_events, window_ms
from benchmarks.engines import duckdb_joins, ours, python_nfa
from benchmarks.engines.question import Kind, Question
from benchmarks.guard.check import judged
from benchmarks.harness.answers import Answer, answer_of, answer_of_table
from benchmarks.harness.clock import Taken
from benchmarks.harness.compare import ratios
from benchmarks.harness.experiment import Contender, Settings, Side, Workload
from benchmarks.harness.measure import Measured, Times, WrongAnswer, measure
from benchmarks.harness.record import load, save
from benchmarks.registry import QUICK, SLOW
from benchmarks.report import page
from benchmarks.report.findings import exactly_three_is_least, flat, gains, gains_less, gains_more, grows, least_is
from benchmarks.report.papers import FINDINGS


def test_the_order_of_rows_does_not_matter_and_that_of_columns_does() -> None:
    a, b = np.array([1, 2, 3]), np.array([7, 8, 9])
    assert answer_of([a, b]) == answer_of([a[::-1], b[::-1]])
    assert answer_of([a, b]) != answer_of([b, a])
    assert answer_of([a, b]) != answer_of([a, b[::-1]])


def test_the_order_of_a_groups_elements_does_not_matter_and_their_group_does() -> None:
    def answer(groups: list[list[int]]) -> Answer:
        return answer_of_table(pa.table({"a": [1, 2], "b": groups}), ["a", "b"])

    assert answer([[1, 2], [3]]) == answer([[2, 1], [3]])
    assert answer([[1, 2], [3]]) != answer([[1], [2, 3]])


def test_a_hash_is_the_one_that_java_computes() -> None:
    # By hand: the finalizer of splitmix64 of 1, which Answer.java has too.
    assert answer_of([np.array([0])]) == Answer(1, 0x5692161D100B05E5)


@pytest.mark.parametrize("kind", Kind)
def test_engines_in_this_process_answer_alike(kind: Kind) -> None:
    question = Question(kind, window_ms(5, 12), keyed_events(1500, 5, 5))
    contenders = [ours.contender(question), python_nfa.contender(question), *duckdb_joins.contenders(question, 1)]
    answers = {each.name: each.answer() for each in contenders}
    assert len(set(answers.values())) == 1, answers
    assert answers["streamsift"].rows > 100


def contender(name: str, rows: int, wall_s: float = 1.0) -> Contender:
    return Contender(name, Side.RIVAL, lambda: Answer(rows, 0), lambda: Taken(wall_s, wall_s))


def test_no_time_is_taken_when_answers_differ() -> None:
    with pytest.raises(WrongAnswer, match="rival"):
        measure(Workload("w", 10, (contender("ours", 5), contender("rival", 6))), Settings())


def test_a_record_is_read_back_as_it_was(tmp_path: Path) -> None:
    measured = measure(Workload("w", 10, (contender("ours", 5, 0.25), contender("rival", 5))), Settings(repetitions=2))
    content, found = load(save("e", "about", Settings(), [measured], tmp_path))
    assert found == [measured]
    assert content["run"]["versions"]["numpy"] == np.__version__
    assert measured.times[0].seconds == (0.25, 0.25)


@pytest.mark.parametrize(
    ("before", "after", "verdict"),
    [
        ((1.0, 1.1, 1.2), (1.5, 1.6, 1.7), "slower"),
        ((1.0, 1.1, 1.2), (1.15, 1.3, 1.4), "within the noise"),
        ((1.0, 1.1, 1.2), (0.7, 0.8, 0.9), "faster"),
        ((1.0, 1.1, 1.2), (9.0,), "a single sample"),
        ((0.0, 0.0, 0.0), (0.0, 0.0, 1.0), "within the noise"),
    ],
)
def test_bands_that_overlap_are_noise(
    tmp_path: Path, before: tuple[float, ...], after: tuple[float, ...], verdict: str
) -> None:
    for name, seconds in (("a", before), ("b", after)):
        times = (Times("streamsift", Side.OURS, seconds),)
        save("e", "about", Settings(), [Measured("w", 10, 5, times)], tmp_path / name)
    (found,) = ratios(tmp_path / "a", tmp_path / "b")
    assert found.verdict == verdict


def test_a_kernel_is_slower_only_if_it_is_at_every_chance() -> None:
    noisy, slow = iter([2.0, 1.2]), iter([2.0, 1.9, 1.8])
    assert not judged("noisy", lambda: next(noisy), 1.0).slower
    assert judged("slow", lambda: next(slow), 1.0).slower
    assert not judged("new", lambda: 5.0, None).slower


def test_a_report_has_what_was_measured_and_nothing_else(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    contenders = (
        contender("streamsift", 5, 0.5),
        contender("DuckDB, Arrow: joins", 5, 1.0),
        contender("streamsift on Spark", 5, 2.0),
        contender("Spark SQL: joins", 5, 6.0),
    )
    measured = measure(Workload("SEQ(A, B)", 1_000_000, contenders), Settings())
    save("rivals", "about", Settings(), [measured], tmp_path / "results")
    readme = tmp_path / "README.md"
    readme.write_text(
        "<!-- speed summary -->old<!-- end of speed summary -->\n<!-- speed -->\nold\n<!-- end of speed -->\nafter\n"
    )
    for name, path in (("PAGE", "PERFORMANCE.md"), ("FIGURES", "figures"), ("README", "README.md"), ("ROOT", "")):
        monkeypatch.setattr(page, name, tmp_path / path)
    written = list(page.write(tmp_path / "results"))
    text = (tmp_path / "PERFORMANCE.md").read_text()
    assert [path.name for path in written] == ["PERFORMANCE.md", "README.md"]
    assert "| SEQ(A, B); 1,000,000; 5 | 2.0 M events/s ±0% |  |  | 2.0× | 12.0× |  |" in text
    assert "| SEQ(A, B) | 2.00 s | 3.0×, joins |" in text
    assert "Growth" not in text
    assert "| SEQ(A, B) | 2.0 M events/s | not run | 2.0× |" in readme.read_text()
    assert "the local engine is 2.0 to 2.0 times as fast as DuckDB ([" in readme.read_text()
    assert "old" not in readme.read_text()


def cases(*seconds: dict[str, float]) -> list[Measured]:
    return [
        Measured(f"w{number}", 1, 1, tuple(Times(name, Side.OURS, (taken,)) for name, taken in each.items()))
        for number, each in enumerate(seconds)
    ]


def test_a_run_agrees_with_a_paper_by_its_own_numbers() -> None:
    measured = cases({"old": 2.0, "new": 1.0}, {"old": 9.0, "new": 1.5})
    assert gains(2, "old", "new")(measured).agrees
    assert not gains(2.1, "old", "new")(measured).agrees
    assert gains_more("old", "new")(measured).agrees
    assert not gains_less("old", "new")(measured).agrees
    assert grows(of="new")(measured).agrees
    assert not flat(1.5)(measured).agrees
    assert least_is("new")(measured).agrees
    assert gains(2, "old", "new")(measured).sentence == "old: 2.00× to 6.00× relative to new"


def test_three_quantifiers_are_compared_at_each_position() -> None:
    right = [{"plan=left": 9.0, "plan=right": taken} for taken in (1.0, 2.0, 3.0, 4.0, 5.0, 3.0)]
    verdict = exactly_three_is_least("plan=right")(cases(*right))
    assert not verdict.agrees
    assert verdict.sentence == "[3] relative to the lower of + and *, by position: 0.50×, 1.33×"


def test_several_benchmarks_run_in_processes_of_their_own(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """With the same settings; one that fails stops no other, and is told."""
    started: list[list[str]] = []

    def run(command: list[str], *, check: bool) -> subprocess.CompletedProcess[str]:
        started.append(command[3:])
        return subprocess.CompletedProcess(command, 1 if "growth" in command else 0)

    monkeypatch.setattr(subprocess, "run", run)
    asked = [
        "--scale=0.5",
        "--repetitions=2",
        "--cores=2",
        "--seed=3",
        "--clock=cpu",
        "--only=",
        f"--results={tmp_path}",
    ]
    assert runner.main(["run", "growth", "micro", *asked]) == 1
    assert started == [["run", *asked, "growth"], ["run", *asked, "micro"]]
    assert "failed: growth" in capsys.readouterr().err


def test_a_benchmark_that_is_not_there_is_told_before_any_runs(capsys: pytest.CaptureFixture[str]) -> None:
    assert runner.main(["run", "micro", "grwth"]) == 2
    assert capsys.readouterr().err == "no benchmark `grwth`\nHint: did you mean `growth`?\n"
    assert runner.main(["run", "soak"]) == 2
    assert "there are rivals, growth" in capsys.readouterr().err


def test_no_report_is_written_from_nothing(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    before = page.PAGE.read_text(encoding="utf-8")
    assert runner.main(["report", "--results", str(tmp_path)]) == 1
    assert "no records" in capsys.readouterr().err
    assert page.PAGE.read_text(encoding="utf-8") == before


def test_a_run_of_no_workload_leaves_no_record(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert runner.main(["run", "growth", "--only=nothing", "--scale=0.01", f"--results={tmp_path}"]) == 2
    assert "nothing was measured" in capsys.readouterr().err
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("option", ["--scale=0", "--scale=-1", "--scale=nan", "--repetitions=0", "--cores=0"])
def test_settings_that_make_no_sense_are_refused(option: str) -> None:
    with pytest.raises(SystemExit, match="2"):
        runner.main(["run", "growth", option])


def test_every_finding_is_of_a_benchmark_that_is_run() -> None:
    assert {finding.benchmark for finding in FINDINGS} <= {*QUICK, *SLOW}
