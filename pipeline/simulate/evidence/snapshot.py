"""An allocator snapshot of a run that ran out of memory, as an observer of OOM writes it before the stack unwinds."""

from __future__ import annotations

import calendar
import pickle

from sweepscope.pipeline.simulate.evidence.allocator import Allocator, Block, Frames, FullError
from sweepscope.pipeline.simulate.truth import SimulatedRun

_SITES = {
    "parameters": (("_apply", "torch/nn/modules/module.py", 915), ("build_model", "model.py", 140)),
    "forward": (
        ("forward", "torch/nn/modules/linear.py", 125),
        ("forward", "model.py", 310),
        ("train_step", "trainer.py", 233),
    ),
    "logits": (
        ("cross_entropy", "torch/nn/functional.py", 3494),
        ("loss", "trainer.py", 198),
        ("train_step", "trainer.py", 236),
    ),
    "backward": (
        ("_engine_run_backward", "torch/autograd/graph.py", 825),
        ("backward", "torch/_tensor.py", 581),
        ("train_step", "trainer.py", 240),
    ),
    "optimizer": (
        ("_init_group", "torch/optim/adamw.py", 135),
        ("step", "torch/optim/adamw.py", 220),
        ("train_step", "trainer.py", 246),
    ),
}


def _frames(name: str) -> Frames:
    root = "/opt/env/site-packages/"
    return [
        {"name": function, "filename": root + file if file.startswith("torch/") else f"/opt/train/{file}", "line": line}
        for function, file, line in _SITES[name]
    ]


def oom_snapshot(run: SimulatedRun, asked_bytes: int) -> bytes:
    """The pickle of the moment at which `asked_bytes` could not be had.

    Rank 0's share of the model is allocated, then activations layer by layer, and so on until the card is full. A run
    whose share would fit makes steps of growing sequences, as unpadded batches do, until one does not.
    """
    card = Allocator(run.accelerator.memory_bytes, calendar.timegm(run.started_at.timetuple()) * 10**6)
    try:
        _train(run, card)
    except FullError:
        card.trace.pop()
    try:
        while True:
            card.allocate(asked_bytes, _frames("logits"))
    except FullError:
        return pickle.dumps(card.snapshot(""), protocol=4)


def _train(run: SimulatedRun, card: Allocator) -> None:
    model, layout = run.model, run.layout
    frames = {name: _frames(name) for name in _SITES}
    layers = max(1, model.num_layers // layout.pp)
    shard = model.params // (layout.tp * layout.pp)
    weights = [card.allocate(2 * shard // layers, frames["parameters"]) for _ in range(layers)]
    states: list[Block] = []
    tokens = layout.mbs * run.seq_len // layout.cp
    width = 34 * model.hidden_size // layout.tp
    while True:
        saved = [[card.allocate(tokens * width // 4, frames["forward"]) for _ in range(4)] for _ in range(layers)]
        logits = [card.allocate(4 * tokens * model.vocab_size // layout.tp, frames["logits"]) for _ in range(2)]
        gradients: list[Block] = []
        for block in logits:
            card.free(block, frames["backward"])
        for blocks in reversed(saved):
            gradients.append(card.allocate(2 * shard // layers, frames["backward"]))
            for block in blocks:
                card.free(block, frames["backward"])
        if not states:
            divisor = layout.dp if layout.zero_stage else 1
            states = [
                card.allocate(4 * shard // layers // divisor, frames["optimizer"]) for _ in range(3 * len(weights))
            ]
        for block in gradients:
            card.free(block, frames["optimizer"])
        tokens += tokens // 8
