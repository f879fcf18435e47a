"""Hosts without the ends of cut texts, which precede a glued host as if they were part of its name."""

from __future__ import annotations

from collections import defaultdict

import polars as pl


def true_hosts(processes: pl.DataFrame) -> dict[tuple[int, str, int], str]:
    """The host of each process whose name has swallowed the end of another text, by file, printed host and process.

    A process prints many lines, most of them whole: a name that only ends like the name of the same pid at the
    beginning of lines is that name.

    Args:
        processes: `source`, `host`, `pid`, `lines`, `clean` (times at the beginning of a line).
    """
    by_pid: dict[tuple[int, int], list[tuple[str, int]]] = defaultdict(list)
    summed = processes.group_by("source", "host", "pid").agg(pl.col("clean").sum())
    for source, host, pid, clean in summed.sort("host").iter_rows():
        by_pid[source, pid].append((host, clean))
    found = {}
    for (source, pid), names in by_pid.items():
        for host, clean in names:
            shorter = [(times, name) for name, times in names if host != name and host.endswith(name) and times > clean]
            if shorter:
                found[source, host, pid] = max(shorter)[1]
    return found
