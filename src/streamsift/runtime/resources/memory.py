"""Measure how much memory this process can still allocate.

Three limits apply, and the smallest counts: the address space of the process (`ulimit -v`,
`spark.executor.pyspark.memory`), its cgroups, and the free memory of the machine.
"""

from __future__ import annotations

import os
import resource
from functools import cache
from pathlib import Path

_CGROUPS = Path("/sys/fs/cgroup")
_OWN_CGROUPS = Path("/proc/self/cgroup")
_MEMINFO = Path("/proc/meminfo")
_PAGES = Path("/proc/self/statm")


def free_bytes() -> int | None:
    """Return how many bytes this process can still allocate; None if the system does not report it."""
    limits = [free for measure in (of_process, of_container, of_machine) if (free := measure()) is not None]
    return min(limits, default=None)


def of_process() -> int | None:
    """Return the address space that is left below the process's limit; None without a limit."""
    limit, _ = resource.getrlimit(resource.RLIMIT_AS)
    if limit == resource.RLIM_INFINITY:
        return None
    used = int(_PAGES.read_text().split()[0]) * resource.getpagesize() if _PAGES.exists() else 0
    return max(0, limit - used)


def of_container() -> int | None:
    """Return the memory that is left in this process's cgroup and its parents, version 1 or 2; None without a limit."""
    return min((free for group in _groups() if (free := _left_in(*group)) is not None), default=None)


def of_machine() -> int | None:
    """Return the available memory of the machine; its total memory if the system reports only that."""
    if not _MEMINFO.exists():
        try:
            return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
        except (ValueError, OSError):
            return None
    kilobytes = _fields(_MEMINFO).get("MemAvailable:")
    return None if kilobytes is None else kilobytes * 1024


@cache  # a process stays in its cgroups, and finding their files takes longer than reading them
def _groups() -> list[tuple[Path, str, str, str]]:
    """Return the memory cgroups of this process: directory, file of the limit, file of the usage, page cache field."""
    lines = _OWN_CGROUPS.read_text().splitlines() if _OWN_CGROUPS.exists() else ["0::/"]
    groups = []
    for _, controllers, path in (line.split(":", 2) for line in lines if line.count(":") >= 2):
        if controllers and "memory" not in controllers.split(","):
            continue
        root = _CGROUPS / "memory" if controllers else _CGROUPS
        inner = root / path.strip("/")
        # In a container, the path may be one of the host; then only the root exists.
        for group in (directory for directory in (inner, *inner.parents) if directory.is_relative_to(root)):
            for limit, used, cached in (
                ("memory.max", "memory.current", "inactive_file"),
                ("memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file"),
            ):
                if (group / limit).exists() and (group / used).exists():
                    groups.append((group, limit, used, cached))
    return groups


def _left_in(group: Path, limit: str, used: str, cached: str) -> int | None:
    """Return the memory that is left in one cgroup. The page cache can be reclaimed, so it does not count as used."""
    text = (group / limit).read_text().strip()
    if not text.isdigit():  # "max"
        return None
    stat = group / "memory.stat"
    reclaimable = _fields(stat).get(cached, 0) if stat.exists() else 0
    return max(0, int(text) - int((group / used).read_text()) + reclaimable)


def _fields(path: Path) -> dict[str, int]:
    """Parse a file of lines `name number`."""
    words = (line.split() for line in path.read_text().splitlines())
    return {line[0]: int(line[1]) for line in words if len(line) >= 2}
