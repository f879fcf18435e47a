"""Blocks are attributed by what their stacks and lifetimes show, and to nothing where they show nothing."""

from __future__ import annotations

from dataclasses import replace

import pytest

from sweepscope.pipeline.memory.analysis.attribution import NO_STACK, BlockFacts, Stack, categorise
from sweepscope.pipeline.memory.analysis.stacks import frame_text, source_line, stack_text, without_machinery
from sweepscope.pipeline.memory.snapshot.snapshot import Frame


def stack(*lines: str) -> Stack:
    """`file.py:12 name` is Python, anything else C++; innermost first."""
    frames = []
    for line in lines:
        place, _, name = line.partition(" ") if ".py" in line else ("??", "", line)
        filename, _, number = place.partition(":")
        frames.append(Frame(name, filename, int(number or 0)))
    return Stack(frames)


ALONE = BlockFacts(
    made=NO_STACK,
    freed=NO_STACK,
    block_bytes=1 << 20,
    label="",
    was_recorded=True,
    was_freed=False,
    in_optimizer=False,
    outlives_optimizer=False,
    is_compute_stream=True,
)
CPP = ("at::native::empty_strided_cuda(c10::ArrayRef)", "at::_ops::empty_strided::call()")
MODULE = "/x/site-packages/torch/nn/modules/module.py:1750 _call_impl"
FORWARD = stack(*CPP, "/x/site-packages/torch/nn/functional.py:9 linear", "/run/model.py:20 forward", MODULE)
BACKWARD = stack(*CPP, "torch::autograd::generated::MmBackward0::apply(x)", "torch::autograd::Engine::thread_main()")
GRADIENT = stack(*CPP, "torch::autograd::AccumulateGrad::apply(x)", "torch::autograd::Engine::thread_main()")
ZERO_GRAD = stack("/x/site-packages/torch/optim/optimizer.py:900 zero_grad", "/run/train.py:5 main")
ADAM = stack(*CPP, "/x/site-packages/torch/optim/adamw.py:100 _init_group", "/run/train.py:5 main")
FSDP = stack(
    "c10d::ProcessGroupNCCL::allgather_into_tensor()", "/x/fsdp/_fsdp_collectives.py:3 foreach_all_gather", MODULE
)
APPLY = stack(*CPP, "/x/site-packages/torch/nn/modules/module.py:900 _apply", "/run/train.py:2 main")
BUILD = stack(*CPP, "/run/model.py:7 __init__", "/run/train.py:2 main")
RECOMPUTE = stack(
    *CPP, "/run/model.py:20 forward", "/x/torch/utils/checkpoint.py:1400 unpack_hook", "torch::autograd::Engine::x()"
)
WORKSPACE = stack("at::cuda::getCurrentCUDABlasHandle()", *CPP, "/run/model.py:20 forward")


@pytest.mark.parametrize(
    ("facts", "category", "because"),
    [
        (replace(ALONE, label="PARAMETER"), "parameters", "labelled PARAMETER"),
        (replace(ALONE, made=FORWARD), "activations", "not released"),
        (replace(ALONE, made=FORWARD, freed=BACKWARD, was_freed=True), "activations", "released in the backward"),
        (replace(ALONE, made=FORWARD, freed=FORWARD, was_freed=True), "temporary", "released in a forward pass"),
        (replace(ALONE, made=RECOMPUTE), "activations", "recomputed"),
        (replace(ALONE, made=GRADIENT, freed=ZERO_GRAD, was_freed=True), "gradients", "AccumulateGrad"),
        (replace(ALONE, made=BACKWARD, freed=ZERO_GRAD, was_freed=True), "gradients", "kept beyond it"),
        (replace(ALONE, made=BACKWARD), "gradients", "kept beyond it"),
        (replace(ALONE, made=BACKWARD, freed=BACKWARD, was_freed=True), "temporary", "released in the backward"),
        (replace(ALONE, made=BACKWARD, was_freed=True), "temporary", "as far as can be seen"),
        (replace(ALONE, made=ADAM), "optimizer_state", "and kept"),
        (replace(ALONE, made=ADAM, freed=ADAM, was_freed=True), "temporary", "released again"),
        (
            replace(
                ALONE,
                made=stack("/run/muon_step.py:3 step"),
                in_optimizer=True,
                outlives_optimizer=True,
                was_freed=True,
            ),
            "optimizer_state",
            "Optimizer.step annotation and kept",
        ),
        (replace(ALONE, in_optimizer=True, was_freed=True), "temporary", "Optimizer.step annotation and released"),
        (replace(ALONE, made=FSDP), "communication", "c10d::"),
        (replace(ALONE, made=WORKSPACE), "workspace", "getCurrentCUDABlas"),
        (replace(ALONE, block_bytes=8_519_680), "workspace", "default workspace"),
        (replace(ALONE, made=APPLY), "parameters", "_apply"),
        (replace(ALONE, made=BUILD), "parameters", "constructor"),
        (replace(ALONE, was_recorded=False), "unknown", "before recording, without a stack"),
        (replace(ALONE, was_recorded=False, freed=ZERO_GRAD), "gradients", "zero_grad"),
        (replace(ALONE, was_recorded=False, freed=BACKWARD), "activations", "backward"),
        (replace(ALONE, was_recorded=False, freed=ADAM), "optimizer_state", "replaced"),
        (replace(ALONE, is_compute_stream=False), "unknown", "another stream"),
        (ALONE, "unknown", "no stack was recorded"),
        (replace(ALONE, made=stack("/run/evaluate.py:3 main")), "unknown", "no rule knows the stack"),
    ],
)
def test_what_a_block_is_for(facts: BlockFacts, category: str, because: str) -> None:
    found, rule = categorise(facts)
    assert found == category
    assert because in rule


@pytest.mark.parametrize(
    "line",
    ["/home/optimizer_study/train.py:3 main", "/run/schedules.py:7 forward_backward", "/run/backward_compat.py:1 f"],
)
def test_names_that_only_look_like_a_phase(line: str) -> None:
    assert categorise(replace(ALONE, made=stack(line)))[0] == "unknown"


def test_the_source_line_is_the_users_own() -> None:
    assert source_line(FORWARD.frames) == "/run/model.py:20 forward"
    assert source_line(ADAM.frames) == "/run/train.py:5 main"
    assert source_line(stack(*CPP, MODULE).frames) == MODULE
    assert source_line(BACKWARD.frames) == "MmBackward0"
    assert source_line(stack(*CPP).frames) == "empty_strided"
    assert source_line(stack("cudaMallocAsync(x)").frames) == "cudaMallocAsync(x)"
    assert source_line([]) is None


def test_machinery_is_left_out_and_signatures_are_cut() -> None:
    frames = stack("torch::unwind::unwind()", "_PyEval_EvalFrameDefault", *CPP).frames
    assert stack_text(without_machinery(frames)) == "at::native::empty_strided_cuda < at::_ops::empty_strided::call"
    assert frame_text(Frame("f", "/a.py", 0)) == "/a.py f"
