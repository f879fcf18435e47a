"""Layouts that a framework would accept for a model on so many GPUs, and that somebody would plausibly try."""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache

from pipeline.simulate import physics
from pipeline.simulate.catalogue import Accelerator, ModelShape
from pipeline.simulate.truth import Layout

_DEGREES = (1, 2, 4, 8, 16)
_HOPELESS = 1.5  # predicted memory over the card's: nobody tries worse than this


@lru_cache(maxsize=4096)
def candidates(
    model: ModelShape, num_gpus: int, seq_len: int, *, gbs: int, accelerator: Accelerator, framework: str
) -> tuple[Layout, ...]:
    """Valid layouts of a cell, without those far beyond memory; if all are, the leanest one (it will run out)."""
    capacity = accelerator.memory_bytes
    scored = [
        (physics.memory_bytes(model, layout, seq_len) / capacity, layout)
        for layout in _valid(model, num_gpus, seq_len, gbs, framework)
    ]
    tried = tuple(layout for fill, layout in scored if fill < _HOPELESS)
    return tried or (min(scored, key=lambda item: item[0])[1],)


def _valid(model: ModelShape, num_gpus: int, seq_len: int, gbs: int, framework: str) -> Iterator[Layout]:
    for tp in _DEGREES:
        if model.num_heads % tp or model.ffn_hidden_size % tp or (tp > model.num_kv_heads and framework != "megatron"):
            continue
        for pp in _DEGREES:
            if model.num_layers % pp or num_gpus % (tp * pp):
                continue
            for cp in (1, 2, 4):
                if num_gpus % (tp * pp * cp) or (cp > 1 and seq_len % (2 * cp)):
                    continue
                dp = num_gpus // (tp * pp * cp)
                yield from _with_batch(model, Layout(dp, tp, pp, cp, sequence_parallel=tp > 1), gbs, framework)


def _with_batch(model: ModelShape, base: Layout, gbs: int, framework: str) -> Iterator[Layout]:
    for mbs in (1, 2, 4, 8):
        gas, rest = divmod(gbs, base.dp * mbs)
        if rest or gas == 0:
            continue
        for zero_stage in _zero_stages(base.dp, framework):
            for recompute in ("none", "selective", "full") if framework == "megatron" else ("none", "full"):
                for ep in (1, 2, 4, 8) if model.num_experts else (1,):
                    if base.dp % ep == 0:
                        yield Layout(
                            base.dp,
                            base.tp,
                            base.pp,
                            base.cp,
                            ep,
                            gas,
                            mbs,
                            zero_stage,
                            recompute,
                            base.sequence_parallel,
                        )


def _zero_stages(dp: int, framework: str) -> tuple[int, ...]:
    if framework == "torchtitan":
        return (3 if dp > 1 else 0,)
    return (0, 1) if framework != "picotron" and dp > 1 else (0,)
