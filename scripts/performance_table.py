"""The numbers that `make bench` left in benchmarks/results in, the table of docs/performance.md out.

`python scripts/performance_table.py [RESULTS]` rewrites what stands between the two marks on that page.
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PAGE = ROOT / "docs" / "performance.md"
MARKS = re.compile(r"(?<=<!-- measured -->\n).*(?=<!-- end -->)", re.DOTALL)


def main() -> None:
    results = Path(sys.argv[1]) if len(sys.argv) > 1 else ROOT / "benchmarks" / "results"
    files = sorted(results.glob("*.json"))
    lines = ["| benchmark, day | workload | measured |", "| --- | --- | --- |"]
    lines += [line for file in files for line in rows(file)]
    text = PAGE.read_text(encoding="utf-8")
    PAGE.write_text(MARKS.sub(lambda _: "\n" + "\n".join(lines) + "\n\n", text), encoding="utf-8")


def rows(file: Path) -> Iterator[str]:
    day = datetime.fromtimestamp(file.stat().st_mtime, UTC).date()
    for run in json.loads(file.read_text(encoding="utf-8"))["runs"]:
        yield f"| {file.stem}, {day} | {run['workload']} | {told(run)} |"


def told(run: dict[str, object]) -> str:
    """Ours first, then the fastest of the others; a headline where the run compares ours with ours."""
    seconds: dict[str, float] = dict(run["seconds"])  # type: ignore[call-overload]
    (first, ours), *others = seconds.items()
    stopped: dict[str, float] = dict(run.get("stopped") or {})  # type: ignore[call-overload]
    ended = "".join(f"; {name} was stopped after {after:.0f} s" for name, after in stopped.items())
    if run.get("headline") or not others:
        return f"{first} {ours:.3g} s; {run.get('headline') or 'no rival ended'}{ended}"
    name, fastest = min(others, key=lambda other: other[1])
    return f"{first} {ours:.3g} s, {name} {fastest:.3g} s: **{fastest / ours:.1f} times**{ended}"


if __name__ == "__main__":
    main()
