"""Files of trackers as histories of a run: its steps, and what its configuration states."""

from __future__ import annotations

from collections.abc import Callable

from sweepscope.pipeline.logs.dialect import BinaryHistory, Tracked
from sweepscope.pipeline.logs.trackers import tensorboard, wandb_run
from sweepscope.pipeline.logs.trackers.tracked_run import TrackedRun, steps


def _tracked(read: Callable[[bytes], TrackedRun]) -> Callable[[bytes], Tracked]:
    def read_tracked(data: bytes) -> Tracked:
        run = read(data)
        return Tracked(steps(run), run.all_settings)

    return read_tracked


HISTORIES = (
    BinaryHistory("run-*.wandb", _tracked(wandb_run.read)),
    BinaryHistory("*events.out.tfevents.*", _tracked(tensorboard.read)),
)
