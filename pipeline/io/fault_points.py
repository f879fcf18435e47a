"""Named points of a write at which a test has this process killed, to see that what is left can be gone on from."""

from __future__ import annotations

import os
import signal

VARIABLE = "SWEEPSCOPE_KILL_AT"
"""`NAME` or `NAME:N`: the N-th time that a process reaches the point, it kills itself with SIGKILL."""

POINTS = {
    "batch.stored": "the batch that a run will read is stored",
    "run.started": "a Dagster run has begun to work",
    "files.read": "the files of a batch are read, nothing is written",
    "record.saved": "what was read of a growing log is kept",
    "rows.validated": "the rows of a batch are validated",
    "lake.table_written": "a table of a commit or a compaction is written, others are not",
    "lake.tables_written": "all tables of a commit are written, its release is not",
    "file.written": "a release, or another small file, is written under its temporary name",
    "shared.data_pushed": "the data files of a commit are at the shared lake, its log entries are not",
    "shared.entry_pushed": "a log entry of a commit is at the shared lake, others are not",
    "shared.release_made": "a commit is visible at the shared lake, the home's copy does not know",
    "release.made": "a commit or a compaction is visible",
    "store.copied": "the store before is copied, its rows are not exchanged",
    "store.filled": "the tables of a new store are filled, it is not whole",
    "store.built": "a new store is whole, under its temporary name",
    "store.renamed": "a new store has its name, readers see the one before",
    "store.linked": "readers see the new store, old ones are not removed",
    "lake.pruned": "some files that no release needs are removed",
}
"""Name to the state in which a process is killed there."""

_left: dict[str, int] = {}


def reach(name: str) -> None:
    """Kill this process when SWEEPSCOPE_KILL_AT names this point; else do nothing.

    Raises:
        KeyError: the point is not listed.
    """
    meaning = POINTS[name]
    wanted, _, number = os.environ.get(VARIABLE, "").partition(":")
    if wanted != name or not meaning:
        return
    _left[name] = _left.get(name, int(number or 1)) - 1
    if _left[name] == 0:
        os.kill(os.getpid(), signal.SIGKILL)
