"""Names of benchmarks in, the command that runs them and the directory to run it in out.

The benchmarks compare with other engines and are no part of the installed package: they stand in the source tree.
"""

from __future__ import annotations

import sys
from pathlib import Path

from streamsift.errors import SetupError, nearest

RUNNER = Path("benchmarks", "__main__.py")


def bench_command(names: list[str]) -> tuple[Path, list[str]]:
    """The source tree is that of the working directory, else the one that this package was imported from."""
    here = Path.cwd().resolve()
    roots = [here, *here.parents, *Path(__file__).resolve().parents]
    root = next((root for root in roots if (root / RUNNER).is_file()), None)
    if root is None:
        raise SetupError(
            "the benchmarks are not in the installed package, but in the source tree\n"
            "Hint: run `streamsift bench`, or `make bench`, in a clone of the project."
        )
    known = [path.stem for path in (root / "benchmarks").glob("[a-z]*.py") if _is_benchmark(path)]
    for name in names:
        if name not in known:
            raise SetupError(f"no benchmark `{name}`\nHint: {nearest(name, known)}")
    return root, [sys.executable, "-m", "benchmarks", *names]


def _is_benchmark(path: Path) -> bool:
    text = path.read_text(encoding="utf-8")
    return "\ndef main(" in text or "\nEXPERIMENT =" in text
