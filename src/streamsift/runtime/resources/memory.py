"""Find how much memory this process may still take.

That is the least of what its limit (`ulimit -v`, `spark.executor.pyspark.memory`), its control group and the
machine leave it.
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
    """Return the memory that this process may still take; None if the system does not report it."""
    limits = [free for each in (of_process, of_container, of_machine) if (free := each()) is not None]
    return min(limits, default=None)


def of_process() -> int | None:
    """Return the rest of the process's limit of address space."""
    limit, _ = resource.getrlimit(resource.RLIMIT_AS)
    if limit == resource.RLIM_INFINITY:
        return None
    used = int(_PAGES.read_text().split()[0]) * resource.getpagesize() if _PAGES.exists() else 0
    return max(0, limit - used)


def of_container() -> int | None:
    """Return the rest of the memory limits of this process and its parent control groups, version 1 or 2."""
    return min((free for group in _groups() if (free := _left_of(*group)) is not None), default=None)


def of_machine() -> int | None:
    """Return the machine's available memory; all of its memory if the system does not report that."""
    if not _MEMINFO.exists():
        try:
            return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
        except (ValueError, OSError):
            return None
    kilobytes = _fields(_MEMINFO).get("MemAvailable:")
    return None if kilobytes is None else kilobytes * 1024


@cache  # a process stays in its groups, and to look for their files takes longer than to read them
def _groups() -> list[tuple[Path, str, str, str]]:
    """Return the control groups of this process for memory: directory, files of limit and use, field of the cache."""
    lines = _OWN_CGROUPS.read_text().splitlines() if _OWN_CGROUPS.exists() else ["0::/"]
    groups = []
    for _, controllers, path in (line.split(":", 2) for line in lines if line.count(":") >= 2):
        if controllers and "memory" not in controllers.split(","):
            continue
        root = _CGROUPS / "memory" if controllers else _CGROUPS
        inner = root / path.strip("/")
        # Inside a container, the path may be one of the host's: only the root is there.
        for group in (each for each in (inner, *inner.parents) if each.is_relative_to(root)):
            for limit, used, cached in (
                ("memory.max", "memory.current", "inactive_file"),
                ("memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file"),
            ):
                if (group / limit).exists() and (group / used).exists():
                    groups.append((group, limit, used, cached))
    return groups


def _left_of(group: Path, limit: str, used: str, cached: str) -> int | None:
    """Return the rest of one control group's limit; the page cache is reclaimable and does not count as used."""
    text = (group / limit).read_text().strip()
    if not text.isdigit():  # "max"
        return None
    stat = group / "memory.stat"
    given_way = _fields(stat).get(cached, 0) if stat.exists() else 0
    return max(0, int(text) - int((group / used).read_text()) + given_way)


def _fields(path: Path) -> dict[str, int]:
    """Return the numbers of a file of lines `name number`."""
    words = (line.split() for line in path.read_text().splitlines())
    return {line[0]: int(line[1]) for line in words if len(line) >= 2}
