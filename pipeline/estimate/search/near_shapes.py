"""Shapes near a model's that its cluster would run at a higher MFU: what a model that is not trained yet could be.

Each changes one number to the nearest that divides better: layers by pipeline stages (126 for 128 where embedding and
head count as a layer each, as Llama 3 405B has it: 2407.21783 section 3.3.2), heads and key-value heads by the tensor
group, feed-forward width and vocabulary by tiles (Megatron-LM pads the vocabulary to 128 x tp).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from sweepscope.pipeline.estimate.search.enumerate import Request
from sweepscope.pipeline.estimate.search.sizes import Size, size_of
from sweepscope.pipeline.reference.model_shape import ModelShape

NEAR = 0.07
"""Share by which the number of layers, heads or the width may change."""
_STAGES = (4, 8, 16, 32)
_TENSOR_GROUP = 8
_WIDTH, _VOCABULARY = 1024, 1024
"""Eight ranks with whole tiles of 128."""


@dataclass(frozen=True)
class NearShape:
    """A change of a model, the fastest layout that it has, and what that gains over the fastest of the model.

    `gain` is relative: of MFU, each shape by its own FLOPs. Rows that pad the vocabulary are no work of the model, so
    of a padded one it is throughput.
    """

    change: str
    shape: ModelShape
    size: Size
    gain: float
    params_change: float


def _nearest(value: int, divisor: int) -> list[int]:
    """Multiples of `divisor` below and above `value` that lie within NEAR of it; none where it is one itself.

    >>> _nearest(126, 16), _nearest(128, 16), _nearest(25, 8)
    ([128], [], [24])
    """
    if value % divisor == 0:
        return []
    below = value // divisor * divisor
    return [one for one in (below, below + divisor) if one and abs(one / value - 1.0) <= NEAR]


def _layers(shape: ModelShape) -> list[int]:
    """Counts of layers that divide by more stages, as they are or with embedding and head as a layer each."""
    wanted = {one for stages in _STAGES for one in _nearest(shape.num_layers, stages)}
    wanted |= {one - 2 for stages in _STAGES for one in _nearest(shape.num_layers + 2, stages)}
    return sorted(count for count in wanted if count > shape.num_dense_layers and count != shape.num_layers)


def changes(shape: ModelShape) -> Iterator[tuple[str, ModelShape]]:
    """(what changes, the shape with it) of every near shape."""
    for count in _layers(shape):
        yield f"{count} layers for {shape.num_layers}", replace(shape, num_layers=count)
    kv, heads = shape.num_kv_heads, shape.num_heads
    for count in _nearest(heads, _TENSOR_GROUP):
        width = count * shape.width_per_head
        keys = count if kv == heads else kv
        if not shape.head_dim and not shape.kv_lora_rank and (kv == heads or count % kv == 0):
            yield (
                f"{count} heads of {shape.width_per_head} for {heads}, {width:,} wide",
                replace(shape, num_heads=count, hidden_size=width, num_kv_heads=keys),
            )
    if not shape.kv_lora_rank and kv < _TENSOR_GROUP <= heads and heads % _TENSOR_GROUP == 0:
        yield f"{_TENSOR_GROUP} key-value heads for {kv}", replace(shape, num_kv_heads=_TENSOR_GROUP)
    if shape.ffn_hidden_size:
        for width in _nearest(shape.ffn_hidden_size, _WIDTH):
            yield f"feed-forward width {width:,} for {shape.ffn_hidden_size:,}", replace(shape, ffn_hidden_size=width)
    for size in _nearest(shape.vocab_size, _VOCABULARY)[-1:]:
        if size > shape.vocab_size:
            yield f"vocabulary padded to {size:,} from {shape.vocab_size:,}", replace(shape, vocab_size=size)


def near_shapes(request: Request, *, margin: float, by: str) -> list[NearShape]:
    """Every near shape on the accelerators of `request`, most gain first; empty where the model itself does not fit."""
    base = size_of(request, request.num_gpus, margin=margin, by=by)
    if base.row is None:
        return []
    shape, found = request.asked.shape, []
    for change, other in changes(shape):
        size = size_of(
            replace(request, asked=replace(request.asked, shape=other)), request.num_gpus, margin=margin, by=by
        )
        if size.row is None:
            continue
        is_padded = other.vocab_size != shape.vocab_size
        gain = size.tokens_per_s / base.tokens_per_s if is_padded else size.mfu / base.mfu
        found.append(NearShape(change, other, size, gain - 1.0, other.params / shape.params - 1.0))
    return sorted(found, key=lambda one: -one.gain)
