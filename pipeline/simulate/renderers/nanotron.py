"""nanotron: one log with the configuration dump, memory lines and human-formatted metrics.

Sources: src/nanotron/trainer.py (train_step_logs, pre_training, init), src/nanotron/logging/base.py (prefix,
human_format, log_memory), src/nanotron/config/*.py (the dump). Variant `2024` prints `elapsed_time_per_iteration_ms`,
the batch in samples and G for 1e9; `2025` prints `time_per_iteration_ms`, the batch in tokens, B, an ETA, and a
coloured prefix whose date has no year and which names only the dimensions in use.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime, timedelta

from sweepscope.pipeline.simulate.console import LogLine
from sweepscope.pipeline.simulate.renderers.nanotron_config import config_text
from sweepscope.pipeline.simulate.renderers.protocol import Renderer, Stated, batch_layout_columns
from sweepscope.pipeline.simulate.renderers.rounding import human_text, mib_value, significant
from sweepscope.pipeline.simulate.truth import ExactStep, SimulatedRun, SimulatedStep

_OLD_SUFFIXES = "KMGTPE"
_MIB = 2**20
_DISK_BYTES = 312_000_000_000  # printed as hd_total_memory_tb: 312G, despite the name


def _rates(run: SimulatedRun, exact: ExactStep) -> tuple[float, float, float]:
    tokens_per_s = run.gbs_tokens / exact.step_time_s
    tflops = run.model.flops_per_token(run.seq_len) * tokens_per_s / run.num_gpus / 1e12
    return tokens_per_s, tokens_per_s / run.num_gpus, tflops


def printed_step(run: SimulatedRun, exact: ExactStep) -> SimulatedStep:
    """The values that the step line shows."""
    tokens_per_s, per_gpu, tflops = _rates(run, exact)
    return SimulatedStep(
        step=exact.step,
        ts=exact.ts.replace(microsecond=0) if run.variant == "2024" else None,
        loss=significant(exact.loss),
        step_time_s=significant(exact.step_time_s * 1000) / 1000,
        tokens_per_s=significant(tokens_per_s),
        tokens_per_s_per_gpu=significant(per_gpu),
        tflops_per_gpu_logged=significant(tflops),
        grad_norm=significant(exact.grad_norm),
        learning_rate=significant(exact.learning_rate),
        consumed_tokens=round(significant(exact.step * run.gbs_tokens)),
    )


def _step_text(run: SimulatedRun, exact: ExactStep) -> str:
    tokens_per_s, per_gpu, tflops = _rates(run, exact)
    old = run.variant == "2024"

    def shown(value: float) -> str:
        return human_text(value, _OLD_SUFFIXES) if old else human_text(value)

    metrics = {
        "consumed_tokens": shown(exact.step * run.gbs_tokens),
        "elapsed_time_per_iteration_ms" if old else "time_per_iteration_ms": shown(exact.step_time_s * 1000),
        "tokens_per_sec": shown(tokens_per_s),
        "tokens_per_sec_per_gpu": shown(per_gpu),
        "global_batch_size": shown(run.layout.gbs if old else run.gbs_tokens),
    }
    norm = {"grad_norm": shown(exact.grad_norm)}
    core = {"lm_loss": shown(exact.loss), "lr": shown(exact.learning_rate), "model_tflops_per_gpu": shown(tflops)}
    if old:
        metrics |= core | {"hardware_tflops_per_gpu": shown(tflops)} | norm
        if exact.step < 5:  # trainer.py logs memory in the first four steps
            metrics |= {
                "cuda_memory_allocated": shown(exact.mem_allocated_bytes),
                "cuda_max_memory_reserved": shown(exact.mem_reserved_bytes),
                "hd_total_memory_tb": shown(_DISK_BYTES),
                "hd_used_memory_tb": shown(_DISK_BYTES * 0.4),
                "hd_free_memory_tb": shown(_DISK_BYTES * 0.6),
            }
    else:
        left = timedelta(seconds=int((run.steps_planned - exact.step) * exact.step_time_s))
        metrics |= norm | core | {"eta": str(left)}
    pairs = (f"{key}: {value}" for key, value in metrics.items())
    return f"iteration: {exact.step} / {run.steps_planned} | " + " | ".join(pairs)


def _prefix(run: SimulatedRun, ts: datetime, pp_rank: int = 0) -> str:
    if run.variant == "2024":
        return f"{ts:%m/%d/%Y %H:%M:%S} [INFO|DP=0|PP={pp_rank}|TP=0]: "
    layout = run.layout
    sizes = (
        ("EP", layout.ep, 0),
        ("CP", layout.cp, 0),
        ("DP", layout.dp, 0),
        ("PP", layout.pp, pp_rank),
        ("TP", layout.tp, 0),
    )
    ranks = "".join(f"|{name}={rank}" for name, size, rank in sizes if size > 1)
    return f"\x1b[2;3m{ts:%m/%d %H:%M:%S} [INFO{ranks}]\x1b[0m: "


def _memory_texts(run: SimulatedRun, exact: ExactStep) -> list[str]:
    """`log_memory`, once before and once after the forward and backward passes."""

    def line(used: float, peak: float, reserved: float) -> str:
        return (
            f" Memory usage: {used / _MIB:.2f}MiB. Peak allocated {peak / _MIB:.2f}MiB. "
            f"Peak reserved: {reserved / _MIB:.2f}MiB"
        )

    allocated, reserved = exact.mem_allocated_bytes, exact.mem_reserved_bytes
    before, after = line(0.62 * allocated, 0.71 * allocated, reserved), line(0.7 * allocated, allocated, reserved)
    if run.variant == "2024":
        return ["", before, "", after]
    return ["Before train_batch_iter", before, "After train_batch_iter", after] if exact.step <= 5 else []


def body(run: SimulatedRun) -> list[LogLine]:
    """Lines of the workers, from start to the last logged step."""
    model, layout = run.model, run.layout
    shard = model.params / (layout.tp * layout.pp)
    start = run.started_at
    config = config_text(run).split("\n")
    head = ["Config:", *config, "Building model..", "Setting PP block ranks..."]
    size = human_text(model.params, _OLD_SUFFIXES if run.variant == "2024" else "KMBTPE")
    head += [
        f"Total number of parameters: {size} ({model.params * 2 / _MIB:.2f}MiB)",
        f"Local number of parameters: {human_text(shard)} ({shard * 2 / _MIB:.2f}MiB)",
        "No checkpoint path provided.",
        "Parametrizing model parameters using StandardParametrizator",
        "[Training Plan] There are 1 training stages ",
        "[Stage stable phase] start from step 1 ",
        f"[Start training] datetime: {start + timedelta(seconds=23, microseconds=653631)} | mbs: {layout.mbs} | "
        f"grad_accum: {layout.gas} | global_batch_size: {layout.gbs} | sequence_length: {run.seq_len} | "
        f"train_steps: {run.steps_planned} | start_iteration_step: 0 | consumed_train_samples: 0",
    ]
    lines = _stamped(run, head, start, 0, 0)
    last_stage = layout.pp - 1
    logger_rank = last_stage * layout.dp * layout.cp * layout.tp  # grid: pp x dp x cp x tp (parallel/context.py)
    for exact in run.exact:
        lines += _stamped(run, _memory_texts(run, exact), exact.ts, 0, 0)
        lines += _stamped(run, [_step_text(run, exact)], exact.ts, last_stage, logger_rank)
    return lines


def _stamped(run: SimulatedRun, texts: Iterable[str], ts: datetime, pp_rank: int, rank: int) -> list[LogLine]:
    prefix = _prefix(run, ts, pp_rank)
    return [LogLine(prefix + text, rank) for text in texts]


def _stated(run: SimulatedRun) -> Stated:
    model = run.model
    stated = {
        **batch_layout_columns(run),
        "zero_stage": run.layout.zero_stage,
        "recompute": run.layout.recompute,
        "num_layers": model.num_layers,
        "hidden_size": model.hidden_size,
        "num_heads": model.num_heads,
        "num_kv_heads": model.num_kv_heads,
        "ffn_hidden_size": model.ffn_hidden_size,
        "vocab_size": model.vocab_size,
        "tie_word_embeddings": model.tie_word_embeddings,
        "precision": "bf16",
        "ep": run.layout.ep,
    }
    if run.variant == "2025":
        stated["cp"] = run.layout.cp
    return stated


def _peaks(run: SimulatedRun, steps: Sequence[ExactStep]) -> tuple[int | None, int | None]:
    """Memory is printed before the step line, so that of a step with a truncated line counts too."""
    begun = [*steps, *([run.unfinished] if run.unfinished else [])]
    shown = [step for step in begun if run.variant == "2024" or step.step <= 5]
    return (
        max((mib_value(step.mem_allocated_bytes) for step in shown), default=None),
        max((mib_value(step.mem_reserved_bytes) for step in shown), default=None),
    )


def _supports(run: SimulatedRun) -> bool:
    """Llama-like models; ZeRO 0 or 1; context parallelism only in the newer code."""
    layout, model = run.layout, run.model
    known = model.gated_mlp and model.num_experts is None and layout.ep == 1 and layout.recompute != "selective"
    return known and layout.zero_stage <= 1 and run.log_interval == 1 and (run.variant == "2025" or layout.cp == 1)


RENDERER = Renderer(
    framework="nanotron",
    variants=("2024", "2025"),
    zero_stages=(0, 1),
    supports=_supports,
    printed_step=printed_step,
    printed_peaks=_peaks,
    stated=_stated,
    body=body,
    log_name=lambda run: f"log_{run.job_id}.out",
    script="run_train.py",
)
