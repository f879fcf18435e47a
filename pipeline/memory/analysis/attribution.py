"""Category of a block, by heuristic rules that name what they matched; what no rule covers stays `unknown`.

Rules from the surest to the weakest: the user's label, the stack, the phase, the lifetime. Names of functions are those
of PyTorch, FSDP, Megatron-LM, DeepSpeed and apex; a hand-written optimizer is recognised by the annotation that
torch.optim.Optimizer puts around its step. A backward pass runs on a separate thread without a Python stack.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

from sweepscope.pipeline.memory.snapshot.snapshot import Frame

CUBLAS_WORKSPACE_BYTES = frozenset({8_519_680, 33_554_432})
"""Defaults of at::cuda::getChosenWorkspaceSize: 4096 KiB x 2 + 16 KiB x 8, and 32 MiB on Hopper."""

# The profiler's categories (torch/profiler/_memory_profiler.py) and labels that users choose.
_LABELS = (
    {"parameter": "parameters", "weight": "parameters", "optimizer_state": "optimizer_state"}
    | {"optimizer": "optimizer_state", "input": "input", "temporary": "temporary", "activation": "activations"}
    | {"gradient": "gradients", "grad": "gradients", "autograd_detail": "autograd_detail", "workspace": "workspace"}
)

# Searched where the work is done: in the C++ frames and the innermost Python frames.
_COMMUNICATION = re.compile(
    r"ProcessGroup\w*::|c10d::|_?all_gather|allgather|reduce_scatter|all_reduce|allreduce|all_to_all|alltoall"
    r"|broadcast_coalesced|FlatParam|flat_param|_unshard|foreach_reduce|param_and_grad_buffer|Reducer::"
    r"|coalesced_collectives"
)
_WORKSPACE = re.compile(r"[Ww]orkspace|getCurrentCUDABlas|CUDABlasLt|raw_cudnn_|run_conv_plan")
_PARAMETERS = re.compile(
    r"module\.py _apply$|[Pp]arameter\b|reset_parameters|from_pretrained|load_state_dict|init_weights|materialize"
    r"|to_empty",
    re.MULTILINE,
)
# Searched in the whole stack: on whose behalf the work is done. A line is "file name".
_OPTIMIZER = re.compile(
    r"torch/optim/|/optim\w*\.py |/optimizers?/\w+\.py |_init_group$|_(?:single|multi)_tensor_\w+$|distrib_optimizer"
    r"|[Ff]used_?[Aa]dam|cpu_adam| (?:adamw?|lion|muon|shampoo|adafactor|lamb)$",
    re.MULTILINE,
)
_ACCUMULATE = re.compile(r"AccumulateGrad|accumulate_grad|main_grad")
_BACKWARD = re.compile(
    r"autograd::Engine|autograd::AccumulateGrad|Backward\d*::apply|_engine_run_backward$|(?<!forward)_backward$"
    r"| backward$",
    re.MULTILINE,
)
_RECOMPUTE = re.compile(r"utils/checkpoint\.py \w*(?:recompute|unpack|backward)|recompute_fn|unpack_hook")
_ZERO_GRAD = re.compile(r"zero_grad|set_to_none|zero_grad_buffer")
_FORWARD = re.compile(r"(?:forward|_call_impl|__call__|attention|mlp)$", re.MULTILINE)
_CONSTRUCTOR = re.compile(r" __init__$", re.MULTILINE)
_INNER_PYTHON = 4


class Stack:
    """Frames of user code and libraries, innermost first, as text to search; each text is built once."""

    def __init__(self, frames: Sequence[Frame]) -> None:
        self.frames = frames

    @cached_property
    def whole(self) -> str:
        """Every frame as a line."""
        return "\n".join(f"{frame.filename} {frame.name.split('(', 1)[0]}" for frame in self.frames)

    @cached_property
    def inner(self) -> str:
        """C++ frames and the innermost Python frames."""
        python = [at for at, frame in enumerate(self.frames) if frame.filename.endswith(".py")]
        end = python[_INNER_PYTHON - 1] + 1 if len(python) >= _INNER_PYTHON else len(self.frames)
        return "\n".join(self.whole.split("\n")[:end])

    @cached_property
    def backward(self) -> str | None:
        """The text that identifies a backward pass; None for other stacks."""
        found = _BACKWARD.search(self.whole)
        return found[0].strip() if found else None

    @cached_property
    def is_forward(self) -> bool:
        return self.backward is None and _FORWARD.search(self.whole) is not None


NO_STACK = Stack(())


@dataclass(frozen=True)
class BlockFacts:
    """Facts about blocks of one kind: the stacks that made and freed them, and their circumstances.

    `in_optimizer`: made inside an Optimizer.step annotation; `outlives_optimizer`: still alive at its end.
    """

    made: Stack
    freed: Stack
    block_bytes: int
    label: str
    was_recorded: bool
    was_freed: bool
    in_optimizer: bool
    outlives_optimizer: bool
    is_compute_stream: bool


def categorise(facts: BlockFacts) -> tuple[str, str]:
    """Category (a term of vocab MEM_CATEGORY) and the rule that chose it, as a sentence."""
    if category := _LABELS.get(facts.label.strip().lower().removeprefix("category.")):
        return category, f"labelled {facts.label}"
    if not facts.made.frames:
        return _in_optimizer(facts) if facts.in_optimizer else _without_stack(facts)
    for pattern, category in ((_COMMUNICATION, "communication"), (_WORKSPACE, "workspace")):
        if found := pattern.search(facts.made.inner):
            return category, f"stack has {found[0]}"
    if facts.in_optimizer or _OPTIMIZER.search(facts.made.whole):
        return _in_optimizer(facts)
    if facts.made.backward:
        return _in_backward(facts, facts.made.backward)
    return _in_forward(facts)


def _without_stack(facts: BlockFacts) -> tuple[str, str]:
    if facts.block_bytes in CUBLAS_WORKSPACE_BYTES:
        return "workspace", "no stack; the size of cuBLAS's default workspace"
    if not facts.was_recorded:
        category, released = _from_release(facts.freed)
        return category, f"allocated before recording, {released}"
    if not facts.is_compute_stream:
        return "unknown", "no stack; on another stream than most blocks"
    return "unknown", "no stack was recorded (autograd's C++ threads have no Python stack)"


def _from_release(freed: Stack) -> tuple[str, str]:
    """Category and rule of a block of which only the stack that freed it is known."""
    if _ZERO_GRAD.search(freed.whole):
        return "gradients", "released by zero_grad"
    if freed.backward:
        return "activations", "released in the backward pass"
    if _OPTIMIZER.search(freed.whole):
        return "optimizer_state", "replaced in an optimizer's code"
    return "unknown", "without a stack"


def _in_optimizer(facts: BlockFacts) -> tuple[str, str]:
    where = "inside an Optimizer.step annotation" if facts.in_optimizer else "in an optimizer's code"
    is_kept = facts.outlives_optimizer if facts.in_optimizer else not facts.was_freed
    if is_kept:
        return "optimizer_state", f"allocated {where} and kept"
    return "temporary", f"allocated {where} and released again"


def _in_backward(facts: BlockFacts, seen: str) -> tuple[str, str]:
    if found := _ACCUMULATE.search(facts.made.whole):
        return "gradients", f"stack has {found[0]}"
    if found := _RECOMPUTE.search(facts.made.whole):
        return "activations", f"recomputed in the backward pass ({found[0]})"
    if facts.was_freed and not _ZERO_GRAD.search(facts.freed.whole):
        if facts.freed.backward:
            return "temporary", f"made ({seen}) and released in the backward pass"
        if not facts.freed.frames:
            return "temporary", f"made in the backward pass ({seen}), released there as far as can be seen"
    return "gradients", f"made in the backward pass ({seen}) and kept beyond it"


def _in_forward(facts: BlockFacts) -> tuple[str, str]:
    if found := _PARAMETERS.search(facts.made.inner):
        return "parameters", f"stack has {found[0]}"
    if not facts.made.is_forward:
        if _CONSTRUCTOR.search(facts.made.inner):
            return "parameters", "made in a constructor, outside a forward pass"
        return "unknown", "no rule knows the stack"
    if facts.freed.is_forward:
        return "temporary", "made and released in a forward pass"
    if facts.freed.backward:
        return "activations", "made in a forward pass, released in the backward pass"
    return "activations", "made in a forward pass and " + ("kept beyond it" if facts.was_freed else "not released")
