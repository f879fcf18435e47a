"""What all trainings share: tokens, and how they end badly, by errors as libraries raise them or by a kill."""

from __future__ import annotations

import os
import signal
import time
from dataclasses import dataclass

import torch
from truth import Truth

PACE_S = float(os.environ.get("REAL_PACE_S", "0.2"))
"""Seconds that every step takes at least, so that there is something to watch."""

_CUDA = (
    "CUDA out of memory. Tried to allocate 2.00 GiB. GPU 0 has a total capacity of 79.11 GiB of which 1.20 GiB is "
    "free. Including non-PyTorch memory, this process has 77.90 GiB memory in use. Of the allocated memory 75.10 GiB "
    "is allocated by PyTorch, and 1.90 GiB is reserved by PyTorch but unallocated."
)


def rows_of_tokens(count: int, length: int, words: int) -> torch.Tensor:
    """Rows of words in their order, from somewhere on: they can be learnt, so that each loss differs from the next."""
    start = torch.randint(0, words, (count, 1), generator=torch.Generator().manual_seed(1))
    return (start + torch.arange(length)) % words


@dataclass(frozen=True)
class Trouble:
    """What happens to a training as soon as so many steps are done: crash, oom, killed or nothing."""

    kind: str
    at: int
    truth: Truth

    def after(self, steps: int) -> None:
        """Pause, and end the training if it is time."""
        time.sleep(PACE_S)
        if self.kind and steps == self.at:
            if self.kind == "killed":
                os.kill(os.getpid(), signal.SIGKILL)
            self.truth.ends(self.kind)
            if self.kind == "oom":
                raise torch.OutOfMemoryError(_CUDA)
            raise ValueError("the batch has 3 rows, wanted 4")
