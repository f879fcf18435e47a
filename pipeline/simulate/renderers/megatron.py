"""Megatron-LM: one Slurm log with the argument dump, iteration lines by the last rank and one memory report.

Sources: megatron/training/training.py (training_log, print_datetime), arguments.py (_print_args), utils.py
(report_memory), theoretical_memory_usage.py. Variants by age: `2021` has neither timestamp nor throughput, `2023` gains
the throughput field, `2024` the timestamp and six digits of learning rate, `2026` microseconds.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from datetime import datetime, timedelta

from sweepscope.pipeline.simulate.console import LogLine, worker
from sweepscope.pipeline.simulate.renderers.megatron_arguments import arguments
from sweepscope.pipeline.simulate.renderers.protocol import Renderer, Stated, batch_layout_columns, cosmetics
from sweepscope.pipeline.simulate.truth import ExactStep, SimulatedRun, SimulatedStep

_MIB = 2**20
_STAMPED = ("2024", "2026")


def _tflops(run: SimulatedRun, exact: ExactStep) -> float:
    return run.model.flops_per_token(run.seq_len) * run.gbs_tokens / exact.step_time_s / run.num_gpus / 1e12


def _rate_digits(run: SimulatedRun) -> int:
    return 6 if run.variant in _STAMPED else 3


def printed_step(run: SimulatedRun, exact: ExactStep) -> SimulatedStep:
    """The values that the step line shows."""
    return SimulatedStep(
        step=exact.step,
        ts=exact.ts.replace(microsecond=0) if run.variant in _STAMPED else None,
        # training_log prints a loss only when it is above zero, which NaN is not.
        loss=float(f"{exact.loss:.6E}") if exact.loss > 0 else None,
        step_time_s=round(exact.step_time_s * 1000, 1) / 1000,
        tflops_per_gpu_logged=None if run.variant == "2021" else round(_tflops(run, exact), 1),
        grad_norm=round(exact.grad_norm, 3),
        learning_rate=float(f"{exact.learning_rate:.{_rate_digits(run)}E}"),
    )


def _step_text(run: SimulatedRun, exact: ExactStep) -> str:
    stamp = {"2024": f"[{exact.ts:%Y-%m-%d %H:%M:%S}] ", "2026": f"[{exact.ts:%Y-%m-%d %H:%M:%S.%f}] "}.get(
        run.variant, ""
    )
    parts = [
        f" {stamp}iteration {exact.step:8d}/{run.steps_planned:8d}",
        f"consumed samples: {exact.step * run.layout.gbs:12d}",
        f"elapsed time per iteration (ms): {exact.step_time_s * 1000:.1f}",
    ]
    if run.variant != "2021":
        parts.append(f"throughput per GPU (TFLOP/s/GPU): {_tflops(run, exact):.1f}")
    parts += [f"learning rate: {exact.learning_rate:.{_rate_digits(run)}E}", f"global batch size: {run.layout.gbs:5d}"]
    if exact.loss > 0:
        parts.append(f"lm loss: {exact.loss:.6E}")
    parts += [
        "loss scale: 1.0",
        f"grad norm: {exact.grad_norm:.3f}",
        "number of skipped iterations:   0",
        f"number of nan iterations: {int(math.isnan(exact.loss)):3d}",
    ]
    return " | ".join(parts) + " |"


def _memory_lines(run: SimulatedRun, exact: ExactStep) -> list[LogLine]:
    """`report_memory`: one line per rank with data-parallel rank 0; the first stage, and so rank 0, is the fullest."""
    layout = run.layout
    inner = layout.tp * layout.cp
    rng = cosmetics(run, "memory")
    lines = []
    for stage in range(layout.pp):
        for tp_rank in range(layout.tp):
            rank = stage * inner * layout.dp + tp_rank
            share = 1.0 if rank == 0 else rng.uniform(0.8, 0.99)
            allocated = int(exact.mem_allocated_bytes * share) // 512 * 512
            reserved = int(exact.mem_reserved_bytes * share) // (2 * _MIB) * 2 * _MIB
            text = (
                f"[Rank {rank}] (after {exact.step} iterations) memory (MB) | allocated: {allocated * 3 // 5 / _MIB} | "
                f"max allocated: {allocated / _MIB} | reserved: {reserved / _MIB} | max reserved: {reserved / _MIB}"
            )
            lines.append(LogLine(text, rank))
    return lines


def _params_lines(run: SimulatedRun) -> list[str]:
    model, layout = run.model, run.layout
    embedding = model.vocab_size * model.hidden_size * (1 if model.tie_word_embeddings else 2)
    shard = model.params / (layout.tp * layout.pp)
    per_param = 6 + 12 / layout.dp if layout.zero_stage else 18
    return [
        f"Number of parameters in transformer layers in billions:  {(model.params - embedding) / 1e9:.2f}",
        f"Number of parameters in embedding layers in billions: {embedding / 1e9:.2f}",
        f"Total number of parameters in billions: {model.params / 1e9:.2f}",
        f"Number of parameters in most loaded shard in billions: {shard / 1e9:.4f}",
        f"Theoretical memory footprints: weight and optimizer={shard * per_param / _MIB:.2f} MB",
    ]


def _datetime_line(what: str, at: datetime) -> str:
    return f"[{what}] datetime: {at:%Y-%m-%d %H:%M:%S} "


def body(run: SimulatedRun) -> list[LogLine]:
    """Lines of the workers, from start to the last logged step."""
    layout, vocab = run.layout, run.model.vocab_size
    padded = math.ceil(vocab / (128 * layout.tp)) * 128 * layout.tp
    context = "" if run.variant == "2021" else f"context-parallel size: {layout.cp} "
    start = run.started_at
    head = [
        f"using world size: {run.num_gpus}, data-parallel size: {layout.dp}, {context}"
        f"tensor-model-parallel size: {layout.tp}, pipeline-model-parallel size: {layout.pp} ",
        "using torch.bfloat16 for parameters ...",
        "------------------------ arguments ------------------------",
        *(f"  {name} {'.' * (48 - len(name))} {value}" for name, value in arguments(run)),
        "-------------------- end of arguments ---------------------",
        f"setting number of micro-batches to constant {layout.gas}",
        "> building HFTokenizer tokenizer ...",
        f" > padded vocab (size: {vocab}) with {padded - vocab} dummy tokens (new size: {padded})",
        "> initializing torch distributed ...",
        f"> initialized tensor model parallel with size {layout.tp}",
        f"> initialized pipeline model parallel with size {layout.pp}",
        "> setting random seeds to 1234 ...",
        "> compiling dataset index builder ...",
        ">>> done with dataset index builder. Compilation time: 0.159 seconds",
        "time to initialize megatron (seconds): 9.322",
        _datetime_line("after megatron is initialized", start + timedelta(seconds=9)),
        "building GPT model ...",
        _datetime_line("after model, optimizer, and learning rate scheduler are built", start + timedelta(seconds=14)),
        "> building train, validation, and test datasets ...",
        _datetime_line("after dataloaders are built", start + timedelta(seconds=19)),
        "done with setup ...",
        "training ...",
        _datetime_line("before the start of training step", start + timedelta(seconds=20)),
    ]
    lines = worker(head)
    last_rank = run.num_gpus - 1
    for position, exact in enumerate(run.exact):
        lines.append(LogLine(_step_text(run, exact), last_rank))
        if position == 0:
            lines += (worker(_params_lines(run)) if run.variant != "2021" else []) + _memory_lines(run, exact)
    if run.status == "completed" and run.exact:
        lines.append(LogLine(_datetime_line("after training is done", run.exact[-1].ts)))
    return lines


def _stated(run: SimulatedRun) -> Stated:
    layout, model = run.layout, run.model
    stated: dict[str, str | int | bool] = {
        **batch_layout_columns(run),
        "gbs": layout.gbs,
        "num_gpus": run.num_gpus,
        "num_layers": model.num_layers,
        "hidden_size": model.hidden_size,
        "num_heads": model.num_heads,
        "ffn_hidden_size": model.ffn_hidden_size,
        "vocab_size": model.vocab_size,
        "precision": "bf16",
    }
    if run.variant != "2021":
        stated |= {
            "cp": layout.cp,
            "ep": layout.ep,
            "zero_stage": layout.zero_stage,
            "recompute": layout.recompute,
            "sequence_parallel": layout.sequence_parallel,
            "num_kv_heads": model.num_kv_heads,
            "tie_word_embeddings": model.tie_word_embeddings,
        }
    if model.num_experts and model.experts_per_token:
        stated |= {"num_experts": model.num_experts, "experts_per_token": model.experts_per_token}
    return stated


def _peaks(_run: SimulatedRun, steps: Sequence[ExactStep]) -> tuple[int | None, int | None]:
    """Memory is reported once, after the first logged step."""
    return (steps[0].mem_allocated_bytes, steps[0].mem_reserved_bytes) if steps else (None, None)


def _supports(run: SimulatedRun) -> bool:
    """ZeRO 0 or 1 (distributed optimizer); GPT-3 shapes are the 2021 code's, and its only ones."""
    layout, model = run.layout, run.model
    if run.variant == "2021":
        return not model.gated_mlp and layout.cp == 1 and layout.zero_stage == 0 and layout.recompute == "none"
    return model.gated_mlp and layout.zero_stage <= 1


RENDERER = Renderer(
    framework="megatron",
    variants=("2021", "2023", "2024", "2026"),
    zero_stages=(0, 1),
    supports=_supports,
    printed_step=printed_step,
    printed_peaks=_peaks,
    stated=_stated,
    body=body,
    log_name=lambda run: f"slurm-{run.job_id}.out",
    script="pretrain_gpt.py",
)
