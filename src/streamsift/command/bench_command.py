"""Make the command that runs benchmarks, and find the directory to run it in.

The benchmarks compare with other engines and are no part of the installed package: they stand in the source tree.
"""

from __future__ import annotations

import sys
from pathlib import Path

from streamsift.errors import SetupError

RUNNER = Path("benchmarks", "__main__.py")


def bench_command(names: list[str]) -> tuple[Path, list[str]]:
    """Return the source tree, that of the working directory or else of this package, and the command to run there."""
    here = Path.cwd().resolve()
    roots = [here, *here.parents, *Path(__file__).resolve().parents]
    root = next((root for root in roots if (root / RUNNER).is_file()), None)
    if root is None:
        raise SetupError(
            "the benchmarks are not in the installed package, but in the source tree\n"
            "Hint: run `streamsift bench`, or `make bench`, in a clone of the project."
        )
    return root, [sys.executable, "-m", "benchmarks", "run", *names]
