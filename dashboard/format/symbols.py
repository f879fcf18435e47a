"""Symbol and word of each run status, class of ending and cell state, so that neither ever rests on colour alone."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Hatch = Literal["", "/", "x"]


@dataclass(frozen=True)
class Mark:
    """Symbol, word, the `Theme` attribute that colours it, and the hatch of an empty cell in that state."""

    symbol: str
    word: str
    color: str = "soft"
    hatch: Hatch = ""

    @property
    def text(self) -> str:
        """Symbol and word."""
        return f"{self.symbol} {self.word}"


STATUS: dict[str, Mark] = {
    "completed": Mark("✓", "completed", "completed"),
    "oom": Mark("▲", "OOM", "failed"),
    "host_oom": Mark("▽", "host OOM", "failed"),
    "hang": Mark("■", "hang", "hang"),
    "nccl_error": Mark("▣", "NCCL error", "infra"),
    "crash": Mark("✕", "crash", "failed"),
    "timeout": Mark("◷", "timeout", "warning"),
    "cancelled": Mark("⊘", "cancelled"),
    "node_fail": Mark("▣", "node failure", "infra"),
    "preempted": Mark("◇", "preempted", "infra"),
    "running": Mark("◐", "running"),
    "truncated": Mark("┄", "truncated", "warning"),
    "failed": Mark("✕", "failed", "failed"),
    "unknown": Mark("?", "unknown"),
}

CELL_STATE: dict[str, Mark] = {
    "measured": Mark("✓", "completed", "completed"),
    "impossible": Mark("–", "impossible"),
    "wont_fit": Mark("△", "won't fit", hatch="/"),
    "oom": Mark("▲", "OOM", "failed", hatch="x"),
    "host_oom": Mark("▽", "host OOM", "failed", hatch="x"),
    "hang": Mark("■", "hang", "hang", hatch="x"),
    "timeout": Mark("◷", "timeout", "warning", hatch="x"),
    "infra": Mark("▣", "infra", "infra", hatch="x"),
    "failed": Mark("✕", "failed", "failed", hatch="x"),
    "quarantined": Mark("⊘", "quarantined"),
    "cancelled": Mark("⊘", "cancelled"),
    "running": Mark("◐", "running"),
    "planned": Mark("◌", "planned"),
    "not_run": Mark("○", "not run"),
}

PLAN_OUTCOME: dict[str, Mark] = {
    "completed": Mark("✓", "completed", "completed"),
    "running": Mark("◐", "running"),
    "failed": Mark("✕", "failed", "failed"),
    "missing": Mark("◌", "not run"),
}

OUTCOME: dict[str, Mark] = {
    "completed": Mark("✓", "completed", "hatch"),
    "held": Mark("◒", "completed, then held", "warning", hatch="x"),
    "oom": Mark("▲", "GPU out of memory", "failed"),
    "hang": Mark("■", "hang", "hang"),
    "infra": Mark("▣", "infrastructure", "infra"),
    "timeout": Mark("◷", "time limit", "warning"),
    "crash": Mark("✕", "crash", "failed", hatch="x"),
    "unexplained": Mark("┄", "no reason given", "axis", hatch="/"),
    "undecided": Mark("⊘", "stopped or unknown", "rule"),
    "running": Mark("◐", "running", "rule"),
}

FILE_STATUS: dict[str, Mark] = {
    "parsed": Mark("✓", "parsed", "completed"),
    "skipped": Mark("–", "skipped"),
    "rejected": Mark("✕", "rejected", "failed"),
    "duplicate": Mark("=", "duplicate"),
    "overwritten": Mark("↺", "overwritten"),
    "rotated": Mark("↻", "rotated"),
    "shrunk": Mark("▽", "shrunk", "warning"),
    "failed": Mark("✕", "failed this time", "failed"),
    "unread": Mark("◷", "unread", "warning"),
    "gone": Mark("○", "gone"),
}
