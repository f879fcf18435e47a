"""What a training meets: less memory than it wants, and names that transformers had when picotron was written."""

from __future__ import annotations

import os
import sys
from typing import Any

_TOKENS = int(os.environ.get("LOOP_TOKENS") or 0)
_MEMORY = (
    "CUDA out of memory. Tried to allocate 2.00 GiB. GPU 0 has a total capacity of 79.11 GiB of which 1.20 GiB is "
    "free. Including non-PyTorch memory, this process has 77.90 GiB memory in use. Of the allocated memory 75.10 GiB "
    "is allocated by PyTorch, and 1.90 GiB is reserved by PyTorch but unallocated."
)


def _with_little_memory() -> None:
    """A micro-batch of more tokens does not fit: its first layer says so, as litgpt takes the loss of few at a time."""
    import torch

    embedded = torch.nn.functional.embedding

    def embedding(tokens: Any, *args: Any, **named: Any) -> Any:
        if tokens.numel() > _TOKENS:
            raise torch.OutOfMemoryError(_MEMORY)
        return embedded(tokens, *args, **named)

    torch.nn.functional.embedding = embedding


def _with_older_names() -> None:
    from transformers import LlamaConfig, PreTrainedTokenizerBase

    if not hasattr(PreTrainedTokenizerBase, "batch_encode_plus"):
        PreTrainedTokenizerBase.batch_encode_plus = PreTrainedTokenizerBase.__call__
    if not hasattr(LlamaConfig(), "rope_theta"):
        LlamaConfig.rope_theta = 10_000.0  # what it takes where a configuration names none


def _without_cuda() -> None:
    """picotron counts parameters on a GPU and waits for one, also where it was asked to use none."""
    import torch

    make = torch.tensor

    def tensor(data: Any, *args: Any, device: Any = None, **named: Any) -> Any:
        return make(data, *args, device="cpu" if device == "cuda" else device, **named)

    torch.tensor = tensor
    torch.cuda.synchronize = lambda: None


if os.environ.get("LOCAL_RANK") is not None and sys.argv:  # a rank of a training, not what launches it
    _with_older_names()
    _without_cuda()
    if _TOKENS:
        _with_little_memory()
