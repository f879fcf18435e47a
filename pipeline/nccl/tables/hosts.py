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
    by_pid: dict[tuple[int, int], dict[str, int]] = defaultdict(dict)
    summed = processes.group_by("source", "host", "pid").agg(pl.col("clean").sum())
    for source, host, pid, clean in summed.sort("host").iter_rows():
        by_pid[source, pid][host] = clean
    found = {}
    for (source, pid), times in by_pid.items():
        lengths = {len(name) for name in times}
        for host, clean in times.items():
            ends = (host[-length:] for length in lengths if length < len(host))
            if likelier := [(times[end], end) for end in ends if times.get(end, -1) > clean]:
                found[source, host, pid] = max(likelier)[1]
    return found
