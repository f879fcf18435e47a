"""What is neither a product nor attention, operator by operator: bytes moved and bytes kept per number, by how it runs.

`moved` is what a forward pass reads and writes of the device's memory per number of the operator's width, in 16 bit:
each kernel reads what goes in and writes what comes out. `kept` is what the backward pass needs of it, beside the input
of the product behind it, which `activations` counts. The widths are those of one token: `hidden`, `inner` (of the
feed-forward block), `query` (of the attention heads) and `logit` (the vocabulary; forward and backward together, for
the loss has no other pass).

`eager` is a kernel for each of PyTorch's operations; `fused` is one kernel, as Transformer Engine, Apex, Triton or
flash-attention's extensions have it, and as TorchInductor makes it of a compiled layer. Transformer Engine's keeps the
same tensors: its normalisation saves input and statistics, its gated activation function both halves of its input.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Literal

Width = Literal["hidden", "inner", "query", "logit"]


@dataclass(frozen=True)
class Bytes:
    """Bytes per number of an operator's width."""

    moved: float
    kept: float


@dataclass(frozen=True)
class Operator:
    """What one layer (or the loss) runs: bytes of all its kernels by form, the usual one first; whose were counted."""

    width: Width
    forms: dict[str, Bytes]
    source: str

    @property
    def usual(self) -> str:
        """The form that a profile's constants describe where nothing else is said."""
        return next(iter(self.forms))

    @property
    def compiled(self) -> str:
        """The form that a compiler makes of it."""
        return "compiled" if "compiled" in self.forms else "fused"


OPERATORS: Final[dict[str, Operator]] = {
    "norm": Operator(
        "hidden",
        {"fused": Bytes(2 * 4.0, 2 * 2.0), "eager": Bytes(2 * 36.0, 2 * 6.0)},
        "Two of a layer. Fused (Transformer Engine, Apex, flash-attention's Triton kernel): read and written once, its "
        "input kept. Eager (transformers modeling_llama.py: LlamaRMSNorm): to fp32 (2+4), square (4+4), mean (4), "
        "times (4+4), to 16 bit (4+2), weight (2+2); keeps the input in fp32 and the normalised one in 16 bit.",
    ),
    "residual": Operator(
        "hidden", {"fused": Bytes(2 * 6.0, 0.0)}, "Two of a layer: two numbers read, one written; nothing kept."
    ),
    "rotary": Operator(
        "query",
        {"fused": Bytes(6.0, 0.0), "eager": Bytes(22.0, 0.0)},
        "Fused: queries, and a share of keys, read and written once. Eager (transformers modeling_llama.py: "
        "apply_rotary_pos_emb): negate and join halves (2+4), two products (4 each), sum (6), and the share of keys; "
        "torchtitan's product of complex numbers moves as much in fp32.",
    ),
    "activation": Operator(
        "inner",
        {"fused": Bytes(6.0, 6.0), "eager": Bytes(10.0, 8.0)},
        "SwiGLU. Fused (Transformer Engine's swiglu, Megatron-Core's fusions/): both halves read, the product written, "
        "all three kept. Eager: function (2+2), product with the other half (4+2); keeps the function's result, too.",
    ),
    "loss": Operator(
        "logit",
        {
            "sharded": Bytes(52.0, 8.0),
            "eager": Bytes(46.0, 12.0),
            "compiled": Bytes(16.0, 8.0),
            "fused": Bytes(8.0, 4.0),
        },
        "Eager (torch.nn.functional.cross_entropy in fp32): cast (2+4), log-softmax, whose kernel reads long rows "
        "three times (12+4, ATen/native/cuda/SoftMax.cu), gradient of the chosen logits (4), of log-softmax (12+4), "
        "cast back (4+2), which is 48; 45 to 47 as measured on an H100 (tests/gpu/kernels.csv), whose cache spares "
        "some. Keeps log-probabilities and both gradients. Sharded over the vocabulary (Megatron-LM "
        "core/tensor_parallel/cross_entropy.py; nanotron too): cast (2+4), maximum (4), difference (4+4), exponentials "
        "(4+4), their sum (4), quotient (4+4); times the gradient (4+4), cast back (4+2); in place. "
        "Compiled: logits read twice (2+2), log-probabilities written and read (4+4), gradient written and read by the "
        "product (2+2). Fused (flash-attention's csrc/xentropy, in 16 bit): read and written once each way.",
    ),
}


@dataclass(frozen=True)
class Scores:
    """Bytes per score of attention that is not fused: moved in a forward and in a backward pass, and kept."""

    forward: float
    backward: float
    kept: float


SCORES: Final = {
    "fused": Scores(10.0, 20.0, 4.0),
    "eager": Scores(26.0, 28.0, 6.0),
    "megatron": Scores(26.0, 28.0, 4.0),
}
"""By how the softmax of attention that is not fused runs.

Fused: scale, mask and softmax in one kernel (Megatron-LM fusions/fused_softmax.py) between products and dropout. Eager
(transformers models/llama/modeling_llama.py: eager_attention_forward): product (2), scale (2+2), mask (2+2), softmax to
fp32 (2+4), to 16 bit (4+2), product (2), copies of heads (2); backward: products (2+2), to fp32 (2+4), softmax (4+4+2),
scale (2+2), products (2+2); keeps probabilities in both widths. Megatron-LM without the fusion (the same file:
forward_torch_softmax) runs as many operators and keeps 16 bit.
"""
PLAIN_ACTIVATION: Final = Bytes(4.0, 4.0)
"""Of an activation function without a gate, one kernel in any form; so is PyTorch's own LayerNorm."""


def usual_bytes(width: Width) -> float:
    """Bytes that the operators of a width move in their usual form in one layer's forward pass, per number."""
    return sum(one.forms[one.usual].moved for one in OPERATORS.values() if one.width == width)
