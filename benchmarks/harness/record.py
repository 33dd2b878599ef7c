"""Write measurements to a JSON file with commit, machine and versions, and read them back."""

from __future__ import annotations

import json
import os
import platform
import shutil
import subprocess
from dataclasses import asdict
from datetime import UTC, datetime
from importlib import metadata
from pathlib import Path
from typing import Any

from benchmarks.harness.experiment import Settings, Side, Skipped
from benchmarks.harness.measure import Measured, Times

ROOT = Path(__file__).resolve().parent.parent.parent
RESULTS = ROOT / "benchmarks" / "results"
PACKAGES = ("streamsift", "numpy", "numba", "pyarrow", "pyspark", "duckdb")


def save(experiment: str, about: str, settings: Settings, measured: list[Measured], folder: Path = RESULTS) -> Path:
    """Save a run; a run on several cores has its own record, next to the one on a single core."""
    folder.mkdir(parents=True, exist_ok=True)
    name = experiment if settings.cores == 1 else f"{experiment} on {settings.cores} cores"
    content = {
        "experiment": name,
        "about": about,
        "settings": asdict(settings),
        "run": _run(),
        "workloads": [each.as_json() for each in measured],
    }
    path = folder / f"{name.replace(' ', '_')}.json"
    path.write_text(json.dumps(content, indent=2) + "\n", encoding="utf-8")
    return path


def load(path: Path) -> tuple[dict[str, Any], list[Measured]]:
    content = json.loads(path.read_text(encoding="utf-8"))
    return content, [_measured(each) for each in content["workloads"]]


def load_all(folder: Path = RESULTS) -> dict[str, tuple[dict[str, Any], list[Measured]]]:
    """Return all records of a folder by the name of their experiment."""
    found = (load(path) for path in sorted(folder.glob("*.json")))
    return {content["experiment"]: (content, measured) for content, measured in found}


def _measured(content: dict[str, Any]) -> Measured:
    times = tuple(
        Times(each["name"], Side(each["side"]), tuple(each["seconds"]), tuple(each["cpu_seconds"]))
        for each in content["times"]
    )
    skipped = tuple(Skipped(**each) for each in content["skipped"])
    kept = {name: content[name] for name in ("workload", "events", "rows", "query", "headline", "unit", "parameters")}
    return Measured(times=times, skipped=skipped, **kept)


def _run() -> dict[str, object]:
    return {
        "at": datetime.now(UTC).isoformat(timespec="seconds"),
        "commit": _output("git", "rev-parse", "--short=12", "HEAD"),
        "changed_files": len(_output("git", "status", "--porcelain", "--", "src", "benchmarks").splitlines()),
        "machine": {
            "processor": _processor(),
            "cores": os.cpu_count(),
            "memory_gb": round(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30, 1),
            "load": os.getloadavg()[0],  # above the cores in use: other processes were running
            "system": platform.platform(),
        },
        "versions": {
            "python": platform.python_version(),
            "java": _java(),
            **{name: metadata.version(name) for name in PACKAGES},
        },
    }


def _processor() -> str:
    lines = Path("/proc/cpuinfo").read_text().splitlines() if Path("/proc/cpuinfo").exists() else []
    named = (line.split(":", 1)[1].strip() for line in lines if line.startswith("model name"))
    return next(named, platform.processor() or platform.machine())


def _java() -> str:
    if shutil.which("java") is None:
        return "none"
    printed = subprocess.run(["java", "-version"], capture_output=True, text=True, check=False).stderr
    return printed.splitlines()[0] if printed else "unknown"


def _output(*words: str) -> str:
    done = subprocess.run(words, cwd=ROOT, capture_output=True, text=True, check=False)
    return done.stdout.strip() if done.returncode == 0 else ""
