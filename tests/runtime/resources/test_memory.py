"""The smallest of three limits counts: that of the process, of its cgroups, and of the machine's memory."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from streamsift.runtime.resources import memory


@pytest.fixture
def system(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A machine with 8 GB and no cgroups."""
    (tmp_path / "meminfo").write_text("MemTotal: 9000000 kB\nMemAvailable: 8000000 kB\nHugePages_Total: 0\n")
    (tmp_path / "own").write_text("0::/\n")
    monkeypatch.setattr(memory, "_MEMINFO", tmp_path / "meminfo")
    monkeypatch.setattr(memory, "_OWN_CGROUPS", tmp_path / "own")
    monkeypatch.setattr(memory, "_CGROUPS", tmp_path / "cgroup")
    monkeypatch.setattr(memory, "of_process", lambda: None)
    memory._groups.cache_clear()
    yield tmp_path
    memory._groups.cache_clear()


def group(directory: Path, limit: str, used: int, cached: int, *, version: int) -> None:
    directory.mkdir(parents=True, exist_ok=True)
    names = {
        1: ("memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file"),
        2: ("memory.max", "memory.current", "inactive_file"),
    }[version]
    (directory / names[0]).write_text(f"{limit}\n")
    (directory / names[1]).write_text(f"{used}\n")
    (directory / "memory.stat").write_text(f"anon 1\n{names[2]} {cached}\n")
    memory._groups.cache_clear()


def test_the_available_memory_of_the_machine(system: Path) -> None:
    assert memory.free_bytes() == 8_000_000 * 1024


def test_a_cgroup_of_version_2(system: Path) -> None:
    group(system / "cgroup", "max", 5, 0, version=2)
    assert memory.of_container() is None
    group(system / "cgroup", "1000", 300, 100, version=2)
    assert memory.free_bytes() == 800  # the page cache does not count as used


def test_parent_cgroups_count_too(system: Path) -> None:
    (system / "own").write_text("0::/pod/container\n")
    group(system / "cgroup" / "pod" / "container", "5000", 300, 0, version=2)
    assert memory.free_bytes() == 4700
    group(system / "cgroup" / "pod", "4000", 3999, 0, version=2)
    assert memory.free_bytes() == 1


def test_a_cgroup_of_version_1(system: Path) -> None:
    (system / "own").write_text("9:cpu:/x\n4:memory:/job/1\n0::/\n")
    group(system / "cgroup" / "memory" / "job" / "1", "2000", 500, 0, version=1)
    group(system / "cgroup" / "memory", "9223372036854771712", 900, 0, version=1)
    assert memory.free_bytes() == 1500


def test_a_host_path_that_is_not_visible_in_the_container(system: Path) -> None:
    (system / "own").write_text("0::/kubepods/pod7/abc\n")
    group(system / "cgroup", "700", 100, 0, version=2)
    assert memory.free_bytes() == 600


def test_the_limit_of_the_process() -> None:
    code = "from streamsift.runtime.resources import memory; print(memory.of_process())"
    command = ["bash", "-c", f"ulimit -v 6000000; exec {sys.executable} -c '{code}'"]
    left = int(subprocess.run(command, capture_output=True, text=True, check=True).stdout)
    assert 1_000_000_000 < left < 6_000_000 * 1024
