"""torchtitan: the TOML of versions to 0.2 (torchtitan/config/job_config.py), the options of 0.3.

From 0.3 on there is no configuration file: `--module` and `--config` name a function of a registry, and options change
what it returns (torchtitan/config/manager.py, configs.py). The command takes whichever the installed version has.
"""

from __future__ import annotations

from typing import Any

from sweepscope.pipeline.launch.framework import HERE, Files, Framework
from sweepscope.pipeline.launch.planned import Planned
from sweepscope.pipeline.launch.toml_text import toml_text

CONFIG = "job_config.toml"
OPTIONS = "torchtitan_options.txt"
_FLAVORS = {
    "Llama 3 8B": ("llama3", "8B"),
    "Llama 3 70B": ("llama3", "70B"),
    "Llama 3 405B": ("llama3", "405B"),
}
"""Model and flavor of torchtitan by names of the registry (torchtitan/models/*/__init__.py)."""
_SCHEDULES = {"1f1b": "1F1B", "interleaved": "Interleaved1F1B", "zb-v": "ZBVZeroBubble", "dualpipe-v": "DualPipeV"}
"""As torch.distributed.pipelining calls them."""


def _flavor(run: Planned) -> tuple[str, str]:
    return _FLAVORS[run.model]


def _degrees(run: Planned) -> dict[str, Any]:
    """The mesh. Without sharding every replica is one of DDP; otherwise copies of what FSDP shards."""
    copies = run.dp_replicate if run.is_sharded else run.dp
    return {
        "data_parallel_replicate_degree": copies,
        "data_parallel_shard_degree": run.dp // copies,
        "fsdp_reshard_after_forward": "never" if run.zero_stage == 2 else "always",
        "tensor_parallel_degree": run.tp,
        "pipeline_parallel_degree": run.pp,
        "context_parallel_degree": run.cp,
        "expert_parallel_degree": run.ep,
        **({"pipeline_parallel_schedule": _SCHEDULES[run.pipeline_schedule]} if run.pp > 1 else {}),
        **({"pipeline_parallel_microbatch_size": run.mbs} if run.pp > 1 else {}),
        **(_layers_of_stages(run) if run.vpp > 1 else {}),
    }


def _batch(run: Planned) -> dict[str, Any]:
    """The batch. Before a pipeline cuts it into micro-batches, a rank takes all of its part at once."""
    return {
        "local_batch_size": run.mbs * (run.gas if run.pp > 1 else 1),
        "global_batch_size": run.gbs,
        "seq_len": run.seq_len,
        "steps": run.steps,
    }


def _layers_of_stages(run: Planned) -> dict[str, Any]:
    """Chunks of interleaving, of which there is no option: as many layers a chunk as make the wanted number."""
    return {
        "pipeline_parallel_layers_per_stage": run.shape.num_layers // (run.pp * run.vpp),
        # Embedding and head count as layers otherwise, and the chunks are others.
        "pipeline_parallel_first_stage_less_layers": 0,
        "pipeline_parallel_last_stage_less_layers": 0,
    }


def config(run: Planned) -> dict[str, Any]:
    """The sections of the TOML."""
    name, flavor = _flavor(run)
    return {
        "job": {"dump_folder": "./outputs", "description": run.name, "print_config": True},
        "profiling": {"enable_memory_snapshot": True, "save_memory_snapshot_folder": "memory_snapshot"},
        "metrics": {"log_freq": 1},
        "model": {"name": name, "flavor": flavor},
        "optimizer": {"name": "AdamW", "lr": 3e-4},
        "lr_scheduler": {"warmup_steps": min(2, run.steps)},
        "training": {**_batch(run), "dataset": "c4_test"},
        "parallelism": _degrees(run),
        "activation_checkpoint": {"mode": run.recompute},
        "checkpoint": {"enable": False},
        "comm": {"trace_buf_size": 20000},
    }


def options(run: Planned) -> tuple[str, ...]:
    """The options of 0.3."""
    name, flavor = _flavor(run)
    found = {
        **{f"training.{name}": value for name, value in _batch(run).items()},
        **{f"parallelism.{name}": value for name, value in _degrees(run).items()},
        # Captured graphs have no pipelines and no experts yet; what is compared has to run alike.
        "training.disable_cuda_graphs": True,
        "metrics.log_freq": 1,
        "profiler.enable_memory_snapshot": True,
    }
    words = [f"--module={name}", f"--config={name}_{flavor.lower()}"]
    for option, value in found.items():
        words.append(f"--{option}" if value is True else f"--{option}={value}")
    # A choice between classes comes last: what follows belongs to it.
    return (*words, f"activation-checkpoint:{run.recompute}")


def _files(run: Planned) -> Files:
    return {CONFIG: toml_text(config(run)), OPTIONS: "\n".join(options(run)) + "\n"}


def _refuse(row: Any) -> str | None:
    if "model" in row and row["model"] not in _FLAVORS:
        return f"torchtitan has no flavor for {row['model']}: its files know {', '.join(_FLAVORS)}"
    if row["zero_stage"] == 0 and row["cp"] > 1:
        return "torchtitan shards over context parallel ranks, too"
    chunks = row["pp"] * (row.get("vpp") or 1)
    if (row.get("vpp") or 1) > 1 and (row.get("num_layers") or chunks) % chunks:
        return "torchtitan's interleaving needs chunks of equal layers"
    return None


TORCHTITAN = Framework(
    name="torchtitan",
    framework="torchtitan",
    about=f"{CONFIG} of versions to 0.2, and the options of those from 0.3 on",
    degrees=frozenset({"tp", "pp", "cp", "vpp", "dp_replicate"}),
    zero_stages=(0, 2, 3),
    recompute=("none", "selective", "full"),
    schedules=tuple(_SCHEDULES),
    states=("dp", "tp", "pp", "cp", "ep", "gbs", "seq_len", "steps_planned", "recompute", "zero_stage"),
    files=_files,
    command=lambda _run: (
        "-m",
        "torchtitan.train",
        f"$(if python -c 'import torchtitan.config.job_config' 2>/dev/null; "
        f"then printf '%s %s' --job.config_file {HERE}/{CONFIG}; else cat {HERE}/{OPTIONS}; fi)",
    ),
    refuse=_refuse,
)
