"""Run benchmarks, compare two runs, check the kernels and write the report: `python -m benchmarks --help`."""

from __future__ import annotations

import argparse
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path

from benchmarks.harness.clock import Clock
from benchmarks.harness.experiment import DEFAULTS, Settings
from benchmarks.harness.record import RESULTS, ROOT
from streamsift.errors import nearest

COMMANDS = ("list", "run", "compare", "check", "report")


def main(words: list[str]) -> int:
    # Names without a command, or no arguments, mean `run`.
    if not words or (words[0] not in COMMANDS and not words[0].startswith("-")):
        words = ["run", *words]
    arguments = _parser().parse_args(words)
    match arguments.command:
        case "list":
            return list_all()
        case "run":
            return run(arguments)
        case "compare":
            return compare(arguments.before, arguments.after)
        case "check":
            return check(arguments.record)
    return report(arguments.results)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    commands = parser.add_subparsers(dest="command", required=True)
    commands.add_parser("list", help="list all benchmarks")
    running = commands.add_parser(
        "run", help="check that results are equal, print ratios, write a JSON record for each"
    )
    running.add_argument("names", nargs="*", help="names of benchmarks; by default, the quick ones")
    running.add_argument("--full", action="store_true", help="include the slow benchmarks, with more repetitions")
    running.add_argument("--scale", type=_positive, default=DEFAULTS.scale, help="factor for the number of events")
    running.add_argument("--repetitions", type=_count, help="repetitions per engine or strategy, after warming up")
    running.add_argument("--cores", type=_count, default=DEFAULTS.cores, help="cores that all engines may use")
    running.add_argument("--seed", type=int, default=DEFAULTS.seed)
    running.add_argument("--clock", type=Clock, choices=list(Clock), default=DEFAULTS.clock)
    running.add_argument(
        "--only",
        default=DEFAULTS.only,
        help="run only workloads whose name contains this text (rivals, growth and applications)",
    )
    running.add_argument("--results", type=Path, default=RESULTS, help="folder of the records")
    comparing = commands.add_parser("compare", help="print the ratios of two folders of records, with their spread")
    comparing.add_argument("before", type=Path)
    comparing.add_argument("after", type=Path)
    checking = commands.add_parser("check", help="fail if a kernel is 30 %% slower than recorded")
    checking.add_argument("--record", action="store_true", help="record the ratios of this machine as thresholds")
    reporting = commands.add_parser("report", help="write PERFORMANCE.md and the README's table from records")
    reporting.add_argument("--results", type=Path, default=RESULTS)
    return parser


def _positive(word: str) -> float:
    number = float(word)
    if not 0 < number < float("inf"):
        raise argparse.ArgumentTypeError(f"{word} is not above 0")
    return number


def _count(word: str) -> int:
    number = int(word)
    if number < 1:
        raise argparse.ArgumentTypeError(f"{word} is less than 1")
    return number


def list_all() -> int:
    from benchmarks.registry import QUICK, SLOW, benchmark

    for name in (*QUICK, *SLOW):
        print(f"{name:15} {benchmark(name).about}{'  (only with --full)' if name in SLOW else ''}")
    return 0


def run(arguments: argparse.Namespace) -> int:
    from benchmarks.harness.record import save
    from benchmarks.registry import QUICK, SLOW, benchmark

    repetitions = arguments.repetitions or (7 if arguments.full else DEFAULTS.repetitions)
    settings = Settings(
        scale=arguments.scale,
        repetitions=repetitions,
        cores=arguments.cores,
        seed=arguments.seed,
        clock=arguments.clock,
        only=arguments.only,
    )
    names = arguments.names or [*QUICK, *(SLOW if arguments.full else ())]
    for name in names:
        if name not in (*QUICK, *SLOW):
            hint = nearest(name, (*QUICK, *SLOW)) or f"there are {', '.join((*QUICK, *SLOW))}."
            print(f"no benchmark `{name}`\nHint: {hint}", file=sys.stderr)
            return 2
    if len(names) > 1:
        return run_each(names, settings, arguments.results)
    chosen = benchmark(names[0])
    print(f"\n{names[0]}: {chosen.about}", flush=True)
    measured = chosen.run(settings)
    if not measured:
        print(f"no workload of {names[0]} has `{settings.only}` in its name; nothing was measured", file=sys.stderr)
        return 2
    print(f"wrote {save(names[0], chosen.about, settings, measured, arguments.results)}", flush=True)
    return 0


def run_each(names: Sequence[str], settings: Settings, results: Path) -> int:
    """Run each benchmark in its own process, because a JVM keeps the cores and memory of its first user.

    If a benchmark fails, it has printed the reason; the others still run.
    """
    options = [f"--{name}={value}" for name, value in asdict(settings).items() if name != "budget_s"]
    command = [sys.executable, "-m", "benchmarks", "run", *options, f"--results={results}"]
    failed = [name for name in names if subprocess.run([*command, name], check=False).returncode]
    if failed:
        print(f"\nfailed: {', '.join(failed)}", file=sys.stderr)
    return 1 if failed else 0


def compare(before: Path, after: Path) -> int:
    from benchmarks.harness.compare import format_ratios, ratios

    found = list(ratios(before, after))
    print(format_ratios(found))
    return 0 if found else 1


def check(record_them: bool) -> int:
    from benchmarks.guard.check import THRESHOLDS, record
    from benchmarks.guard.check import check as check_all

    verdicts = check_all()
    if record_them:
        record(verdicts)
        print(f"recorded in {THRESHOLDS.relative_to(ROOT)}")
        return 0
    slower = [each.name for each in verdicts if each.slower]
    print(f"slower than recorded by 30 % or more: {', '.join(slower)}" if slower else "no kernel has become slower")
    return 1 if slower else 0


def report(results: Path) -> int:
    from benchmarks.report.page import write

    if not any(results.glob("*.json")):
        print(f"no records in {results}: run `make bench`, which writes records and the report", file=sys.stderr)
        return 1
    for path in write(results):
        print(f"written: {path.relative_to(ROOT)}")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
