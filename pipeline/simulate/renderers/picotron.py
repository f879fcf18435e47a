"""picotron: `config.json`, `log_<jobid>.out` and `status.txt`.

Sources: train.py (step line, start-up prints), picotron/utils.py (to_readable_format, get_mfu), create_config.py
(sections of config.json), template/base_job.slurm and submit_slurm_jobs.py (status words). The `comma` variant is the
step line of the tutorial commits. No step time is printed; the batch size is in tokens; memory is memory_reserved/1e9.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence

from sweepscope.pipeline.simulate.console import LogLine, worker
from sweepscope.pipeline.simulate.renderers.protocol import Renderer, Stated, batch_layout_columns, cosmetics
from sweepscope.pipeline.simulate.renderers.rounding import readable_text, readable_value
from sweepscope.pipeline.simulate.truth import ExactStep, SimulatedRun, SimulatedStep

_MFU_PEAK = 989.5e12  # get_mfu's constant, whatever the GPU


def _params(run: SimulatedRun) -> int:
    """picotron's own Llama never ties the head to the embedding."""
    model = run.model
    return model.params + (model.vocab_size * model.hidden_size if model.tie_word_embeddings else 0)


def _rates(run: SimulatedRun, exact: ExactStep) -> tuple[float, float, float]:
    tokens_per_s = run.gbs_tokens / exact.step_time_s
    per_gpu = tokens_per_s / run.num_gpus
    flops = 6 * _params(run) + 12 * run.model.num_layers * run.model.hidden_size * run.seq_len
    return tokens_per_s, per_gpu, per_gpu * flops / _MFU_PEAK * 100


def printed_step(run: SimulatedRun, exact: ExactStep) -> SimulatedStep:
    """The values that the step line shows."""
    tokens_per_s, per_gpu, mfu_percent = _rates(run, exact)
    return SimulatedStep(
        step=exact.step,
        loss=round(exact.loss, 4),
        tokens_per_s=readable_value(tokens_per_s),
        tokens_per_s_per_gpu=readable_value(per_gpu),
        consumed_tokens=round(readable_value(exact.step * run.gbs_tokens)),
        mfu_logged=round(mfu_percent, 2) / 100 if run.variant == "pipe" else None,
        mem_reserved_bytes=round(round(exact.mem_reserved_bytes / 1e9, 2) * 1e9) or None,  # 0.00GB is unknown
    )


def _step_text(run: SimulatedRun, exact: ExactStep) -> str:
    tokens_per_s, per_gpu, mfu_percent = _rates(run, exact)
    batch, trained = readable_text(run.gbs_tokens), readable_text(exact.step * run.gbs_tokens)
    if run.variant == "comma":
        planned = readable_text(run.steps_planned * run.gbs_tokens)
        return (
            f"[rank {_print_rank(run)}] Step: {exact.step}, Loss: {exact.loss:.4f}, "
            f"Global batch size (with seq_len): {batch}, Tokens/s: {readable_text(tokens_per_s)}, "
            f"Tokens/s/GPU: {readable_text(per_gpu)}, Tokens: {trained}/{planned}, "
            f"Memory usage: {exact.mem_reserved_bytes / 1e9:.2f}GB"
        )
    return (
        f"[rank {_print_rank(run)}] Step: {exact.step:<5d} | Loss: {exact.loss:6.4f} | "
        f"Global batch size: {batch:>7s} | Tokens/s: {readable_text(tokens_per_s):>7s} | "
        f"Tokens/s/GPU: {readable_text(per_gpu):>7s} | "
        f"Tokens: {trained:>7s} | MFU: {mfu_percent:5.2f}% | Memory usage: {exact.mem_reserved_bytes / 1e9:6.2f}GB"
    )


def _print_rank(run: SimulatedRun) -> int:
    """First rank of the last stage: the grid is dp x pp x cp x tp (process_group_manager.py)."""
    return (run.layout.pp - 1) * run.layout.cp * run.layout.tp


def body(run: SimulatedRun) -> list[LogLine]:
    """Lines of the workers, from start to the last logged step."""
    rng = cosmetics(run, "body")
    last = _print_rank(run)
    lines = worker(["rank 0: Creating tokenizer", "rank 0: Broadcasting tokenizer to all ranks"])
    lines += worker([f"init dataloader time: {rng.uniform(0.05, 300):.2f}s"], last)
    if last == 0:
        lines += worker([f"Tokens per step: {readable_text(run.gbs_tokens)}"])
    lines += worker(["rank 0: Creating model config", "rank 0: Broadcasting model_config to all ranks"])
    lines += worker([f"rank {last}: Initializing model meta device"], last)
    lines += worker(
        [
            f"init model parallel time: {rng.uniform(0.5, 30):.2f}s",
            f"Number of parameters: {readable_text(_params(run))}",
        ],
        last,
    )
    return lines + worker((_step_text(run, exact) for exact in run.exact), last)


def config_json(run: SimulatedRun) -> str:
    """`config.json` as create_config.py writes it (indent 4, no line feed at the end)."""
    layout, model = run.layout, run.model
    config = {
        "distributed": {
            "tp_size": layout.tp,
            "cp_size": layout.cp,
            "pp_size": layout.pp,
            "dp_size": layout.dp,
            "pp_engine": "1f1b",
            "backend": "nccl",
            "use_cpu": False,
        },
        "model": {
            "name": model.repo,
            "num_hidden_layers": model.num_layers,
            "num_attention_heads": model.num_heads,
            "num_key_value_heads": model.num_kv_heads,
            "dtype": "bfloat16",
            "use_flash_attention": True,
            "use_fused_adam": True,
        },
        "training": {
            "seed": 42,
            "learning_rate": 0.0003,
            "total_train_steps": run.steps_planned,
            "seq_length": run.seq_len,
            "micro_batch_size": layout.mbs,
            "gradient_accumulation_steps": layout.gas,
            "num_samples": 400000,
            "max_tokens": run.steps_planned * run.gbs_tokens if run.variant == "comma" else None,
        },
        "dataset": {"name": "roneneldan/TinyStories", "subset_name": None, "num_workers": 0, "num_proc": 1},
        "checkpoint": {"save_dir": f"ckpt/{run.name}", "save_frequency": 300, "load_path": ""},
        "logging": {"use_wandb": False, "project_name": "picotron", "run_name": run.name},
        "environment": {"OMP_NUM_THREADS": "1", "TOKENIZERS_PARALLELISM": "false", "FLASH_ATTEN": "1", "HF_TOKEN": "x"},
    }
    return json.dumps(config, indent=4)


# The job template greps the log: OutOfMemoryError is oom, any "Timeout" (also a watchdog's) is timeout, the rest by
# exit code. A job that the scheduler kills never reaches that code and stays "running".
_STATUS_WORDS: Mapping[str, str] = (
    {"completed": "completed", "oom": "oom", "hang": "timeout"}
    | {"nccl_error": "fail", "crash": "fail", "host_oom": "fail", "timeout": "running"}
    | {"cancelled": "running", "node_fail": "running", "preempted": "running", "truncated": "running"}
)


def sidecars(run: SimulatedRun) -> dict[str, str]:
    """The configuration file beside the log, and the status file."""
    word = _STATUS_WORDS[run.status]
    if run.status == "cancelled" and run.failure != "scancel":
        word = "fail"
    return {"config.json": config_json(run), "status.txt": word}


def _stated(run: SimulatedRun) -> Stated:
    return {
        **batch_layout_columns(run),
        "cp": run.layout.cp,
        "model": run.model.repo,
        "num_layers": run.model.num_layers,
        "num_heads": run.model.num_heads,
        "num_kv_heads": run.model.num_kv_heads,
        "zero_stage": 0,
        "precision": "bf16",
    }


def _peaks(run: SimulatedRun, steps: Sequence[ExactStep]) -> tuple[None, int | None]:
    reserved = [printed_step(run, step).mem_reserved_bytes or 0 for step in steps]
    return None, max(reserved, default=0) or None


def _supports(run: SimulatedRun) -> bool:
    """Llama-like dense models, no ZeRO, no recomputation; the comma variant knew no context parallelism."""
    layout = run.layout
    plain = layout.zero_stage == 0 and layout.recompute == "none" and layout.ep == 1 and run.model.gated_mlp
    return (
        plain and run.model.num_experts is None and run.log_interval == 1 and (run.variant == "pipe" or layout.cp == 1)
    )


RENDERER = Renderer(
    framework="picotron",
    variants=("comma", "pipe"),
    zero_stages=(0,),
    supports=_supports,
    printed_step=printed_step,
    printed_peaks=_peaks,
    stated=_stated,
    body=body,
    log_name=lambda run: f"log_{run.job_id}.out",
    sidecars=sidecars,
    script="train.py",
)
