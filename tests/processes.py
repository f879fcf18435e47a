"""Processes below another one, by /proc, and the processor time of this one's."""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path


def descendants(root_pid: int) -> list[int]:
    """Ids of the processes that a process has started, and of those that they have."""
    parents: dict[int, int] = {}
    for folder in Path("/proc").iterdir():
        if folder.name.isdigit():
            with suppress(OSError, ValueError, IndexError):
                # The name of the program may hold blanks and brackets.
                parents[int(folder.name)] = int((folder / "stat").read_text().rpartition(")")[2].split()[1])
    found, waiting = [], [root_pid]
    while waiting:
        above = waiting.pop()
        children = [pid for pid, parent in parents.items() if parent == above]
        found += children
        waiting += children
    return found


def command_line(pid: int) -> list[str]:
    """Words of a process's command. Raises OSError where it is gone."""
    return Path(f"/proc/{pid}/cmdline").read_bytes().decode(errors="replace").split("\0")


def cpu_s() -> float:
    """Processor seconds of this process and of those that it has waited for."""
    times = os.times()
    return times.user + times.system + children_cpu_s()


def children_cpu_s() -> float:
    """Processor seconds of the processes that this one has waited for, and of those that they have."""
    times = os.times()
    return times.children_user + times.children_system
