"""torchtitan: the launcher's and trainer's start-up lines and a step line at step 1 and every `log_freq` steps.

Sources: torchtitan/components/metrics.py (step line, colours), distributed/parallel_dims.py (mesh line), trainer.py and
train.py ("Trainer is initialized", "Training starts"), tools/utils.py (peaks, colours). Ages: `2024-10` calls tokens
words (`wps`) and prints no TFLOP/s, `2025-03` has tps and tflops, both name only the mesh dimensions in use and know no
gradient accumulation; `2025-10` prints the whole mesh and grad_norm, `2026-05` five digits of loss. `tps` is per
device, memory is the peak reserved since the line before.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from datetime import datetime, timedelta

from sweepscope.pipeline.simulate.console import LogLine, agent
from sweepscope.pipeline.simulate.renderers.protocol import Renderer, Stated, batch_layout_columns, cosmetics
from sweepscope.pipeline.simulate.truth import ExactStep, SimulatedRun, SimulatedStep

_GIB = 2**30
_COLOURS = {
    "red": "\x1b[31m",
    "green": "\x1b[32m",
    "orange": "\x1b[38;2;180;60;0m",
    "turquoise": "\x1b[38;2;54;234;195m",
    "blue": "\x1b[34m",
    "cyan": "\x1b[36m",
    "magenta": "\x1b[35m",
    "reset": "\x1b[39m",
}


def _colours(run: SimulatedRun) -> dict[str, str]:
    """Colours are on by default and off with --metrics.disable_color_printing."""
    return _COLOURS if run.noise.colours else dict.fromkeys(_COLOURS, "")


def _is_since(run: SimulatedRun, variant: str) -> bool:
    return run.variant >= variant  # variants are dates


def _loss_digits(run: SimulatedRun) -> int:
    return 5 if _is_since(run, "2026-05") else 4


def _rates(run: SimulatedRun, exact: ExactStep) -> tuple[float, float, float]:
    tps = run.gbs_tokens / exact.step_time_s / run.num_gpus
    flops = run.model.flops_per_token(run.seq_len) * tps
    return tps, flops / 1e12, 100 * flops / (run.accelerator.peak_tflops * 1e12)


def printed_step(run: SimulatedRun, exact: ExactStep) -> SimulatedStep:
    """The values that the step line shows."""
    tps, tflops, mfu_percent = _rates(run, exact)
    return SimulatedStep(
        step=exact.step,
        ts=exact.ts.replace(microsecond=0),
        loss=round(exact.loss, _loss_digits(run)),
        tokens_per_s_per_gpu=float(round(tps)),
        tflops_per_gpu_logged=round(tflops, 2) if _is_since(run, "2025-03") else None,
        mfu_logged=round(mfu_percent, 2) / 100,
        mem_reserved_bytes=round(round(exact.mem_reserved_bytes / _GIB, 2) * _GIB) or None,  # 0.00GiB is unknown
        grad_norm=round(exact.grad_norm, 4) if _is_since(run, "2025-10") else None,
    )


def _step_text(run: SimulatedRun, exact: ExactStep) -> str:
    tps, tflops, mfu_percent = _rates(run, exact)
    c = _colours(run)
    share = 100 * exact.mem_reserved_bytes / run.accelerator.memory_bytes
    digits = _loss_digits(run)
    tokens = "tps" if _is_since(run, "2025-03") else "wps"
    fields = [
        f"{c['red']}step: {exact.step:2}",
        f"{c['green']}loss: {exact.loss:{digits + 3}.{digits}f}",
        f"{c['orange']}grad_norm: {exact.grad_norm:7.4f}" if _is_since(run, "2025-10") else "",
        f"{c['turquoise']}memory: {exact.mem_reserved_bytes / _GIB:5.2f}GiB({share:.2f}%)",
        f"{c['blue']}{tokens}: {round(tps):,}",
        f"{c['cyan']}tflops: {tflops:,.2f}" if _is_since(run, "2025-03") else "",
        f"{c['magenta']}mfu: {mfu_percent:.2f}%{c['reset']}",
    ]
    return "  ".join(field for field in fields if field)


def _mesh_text(run: SimulatedRun) -> str:
    layout = run.layout
    sizes = {"pp": layout.pp, "dp_replicate": 1, "dp_shard": layout.dp, "cp": layout.cp, "tp": layout.tp}
    if not _is_since(run, "2025-10"):
        used = {name: size for name, size in sizes.items() if size > 1}
        return f"Building {len(used)}-D device mesh with {list(used)}, {list(used.values())}"
    tail = f", ep={layout.ep}" + ("" if _is_since(run, "2026-05") else ", etp=1")
    return "Building device mesh with parallelism: " + ", ".join(f"{k}={v}" for k, v in sizes.items()) + tail


def _head_texts(run: SimulatedRun) -> list[str]:
    model, layout, gpu = run.model, run.layout, run.accelerator
    c = _colours(run)
    weights = model.params * 4 / run.num_gpus
    batch = f"local batch size {layout.mbs}, global batch size {layout.gbs}, "
    steps = f"sequence length {run.seq_len}, total steps {run.steps_planned} (warmup {min(200, run.steps_planned)})"
    device = "CUDA" if _is_since(run, "2025-03") else "GPU"
    index = "" if _is_since(run, "2025-03") else " (0)"
    texts = [
        "torchtitan version: 0.2.0 (0.0.0 means __version__ is not defined correctly).",
        _mesh_text(run),
        "[GC] Initial GC collection took 0.00 seconds",
        "Loading tokenizer from tokenizer.json",
        "Preparing c4 dataset from allenai/c4",
        f"Building {model.family} {model.flavor}",
        f"{device} capacity: {gpu.device_name}{index} with {gpu.memory_bytes / _GIB:.2f}GiB memory",
        f"{c['blue']}Model {model.family} {model.flavor} {c['red']}size: {model.params:,} total parameters{c['reset']}",
    ]
    if layout.recompute != "none":
        texts.append(f"Applied {layout.recompute} activation checkpointing to the model")
    texts += [
        "Compiling each TransformerBlock with torch.compile",
        "Applied FSDP to the model",
        f"Peak FLOPS used for computing MFU: {gpu.peak_tflops * 1e12:.3e}",
        f"{device} memory usage for model: {weights / _GIB:.2f}GiB({100 * weights / gpu.memory_bytes:.2f}%)",
    ]
    if not _is_since(run, "2025-10"):
        return [*texts, f"Training starts at step 1, with {batch}{steps}"]
    gas = f"gradient accumulation steps {layout.gas}, "
    return [*texts, f"Trainer is initialized with {batch}{gas}{steps}", "Training starts at step 1"]


def _stamped(texts: Iterable[str], ts: datetime, rank: int) -> list[LogLine]:
    stamp = f"[titan] {ts:%Y-%m-%d %H:%M:%S},{ts.microsecond // 1000:03d} - root - INFO - "
    return [LogLine(stamp + text, rank) for text in texts]


def body(run: SimulatedRun) -> list[LogLine]:
    """Lines of the workers, from start to the last logged step."""
    rng = cosmetics(run, "body")
    layout = run.layout
    # The loss is visible on the first rank of the last stage; run_train.sh filters the console to that rank.
    rank = run.num_gpus // layout.pp * (layout.pp - 1)
    pid = rng.randrange(10_000, 4_000_000)
    stamp = f"W{run.started_at:%m%d %H:%M:%S}.{rng.randrange(1000):03d}000 {pid} torch/distributed/run.py:874] "
    stars = stamp + "*****************************************"
    warning = "Setting OMP_NUM_THREADS environment variable for each process to be 1 in default, to avoid your system "
    warning += (
        "being overloaded, please further tune the variable for optimal performance in your application as needed. "
    )
    lines = agent([f"+ NGPU={run.gpus_per_node}", "+ LOG_RANK=0", stamp, stars, stamp + warning, stars])
    lines += _stamped(_head_texts(run), run.started_at + timedelta(seconds=8), rank)
    for position, exact in enumerate(run.exact):
        lines += _stamped([_step_text(run, exact)], exact.ts, rank)
        if layout.pp > 1 and run.noise.tee == "rank" and exact is not run.unfinished:
            # LOG_RANK=0,<rank>: the first stage reports too, with its own memory and without a loss.
            other = replace(exact, loss=-1.0, mem_reserved_bytes=exact.mem_reserved_bytes * 7 // 8)
            lines += _stamped([_step_text(run, other)], exact.ts, 0)
        if position == 0:
            lines += _stamped(["Synchronizing and adjusting timeout for all ProcessGroups to 0:01:40"], exact.ts, rank)
    if run.status == "completed" and run.exact:
        end = run.exact[-1].ts
        lines += _stamped(["Sleeping 2 seconds for other ranks to complete"], end, rank)
        lines += _stamped(["Training completed", "Process group destroyed"], end + timedelta(seconds=2), rank)
    return lines


def _stated(run: SimulatedRun) -> Stated:
    layout = run.layout
    stated: dict[str, str | int | bool] = {
        **batch_layout_columns(run),
        "gbs": layout.gbs,
        "cp": layout.cp,
        "params": run.model.params,
        "accelerator": run.accelerator.name,
    }
    if not _is_since(run, "2025-10"):
        # Dimensions of size one are not named: absent there means 1, which the mesh line does not say outright.
        del stated["gas"]
        return {k: v for k, v in stated.items() if k not in {"dp", "tp", "pp", "cp"} or v != 1}
    return stated | {"ep": layout.ep}


def _peaks(run: SimulatedRun, steps: Sequence[ExactStep]) -> tuple[None, int | None]:
    reserved = [printed_step(run, step).mem_reserved_bytes or 0 for step in steps]
    return None, max(reserved, default=0) or None


def _supports(run: SimulatedRun) -> bool:
    """FSDP shards over dp; the early code had no gradient accumulation and needs a mesh of at least one axis."""
    layout, model = run.layout, run.model
    if layout.zero_stage != (3 if layout.dp > 1 else 0) or not model.gated_mlp or layout.recompute == "selective":
        return False
    return model.num_experts is None and (_is_since(run, "2025-10") or (layout.gas == 1 and run.num_gpus > 1))


RENDERER = Renderer(
    framework="torchtitan",
    variants=("2024-10", "2025-03", "2025-10", "2026-05"),
    zero_stages=(3,),
    supports=_supports,
    printed_step=printed_step,
    printed_peaks=_peaks,
    stated=_stated,
    body=body,
    log_name=lambda _run: "run.log",
    script="torchtitan.train",
)
