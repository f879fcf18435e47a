"""Have a framework's own configuration code read what was written for it: `python accept.py NAME FOLDER`.

It runs in an interpreter that has the framework, not in ours, and imports nothing of ours. Packages of kernels that
need a GPU to be installed are replaced by empty ones: only code that reads configurations is run. The degrees that the
framework has understood are printed as one JSON object. Ends with code 3 where the framework is not there.
"""

from __future__ import annotations

import importlib.abc
import importlib.machinery
import importlib.util
import json
import sys
import typing
from pathlib import Path
from types import ModuleType
from typing import Any
from unittest.mock import MagicMock

KERNELS = (
    *("flash_attn", "ring_flash_attn", "triton", "grouped_gemm", "transformer_engine", "apex", "nvidia_resiliency_ext"),
    *("modelopt", "nvidia", "quack"),
)
NOT_THERE = 3


class Anything:
    """What a class of an empty module is: made with any arguments."""

    def __init__(self, *_args: Any, **_named: Any) -> None:
        pass


class Empty(ModuleType):
    """A module that has every name."""

    __path__: list[str] = []  # noqa: RUF012 - the import system's own attribute

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return type(name, (Anything,), {}) if name[0].isupper() else MagicMock()


class Kernels(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Finds the packages of KERNELS that are not installed."""

    def find_spec(self, name: str, *_others: Any) -> importlib.machinery.ModuleSpec | None:
        is_kernel = name.partition(".")[0] in KERNELS
        return importlib.machinery.ModuleSpec(name, self, is_package=True) if is_kernel else None

    def create_module(self, spec: importlib.machinery.ModuleSpec) -> ModuleType:
        return Empty(spec.name)

    def exec_module(self, module: ModuleType) -> None:
        module.__version__ = "99.0"  # type: ignore[attr-defined] # asked for by those that check it


def nanotron(folder: Path) -> dict[str, Any]:
    from nanotron.config import get_config_from_file  # type: ignore[import-not-found] # of another interpreter

    config = get_config_from_file(str(folder / "nanotron.yaml"))
    at, tokens = config.parallelism, config.tokens
    return {
        "dp": at.dp * at.expert_parallel_size,
        "tp": at.tp,
        "pp": at.pp,
        "cp": at.context_parallel_size,
        "mbs": tokens.micro_batch_size,
        "gas": tokens.batch_accumulation_per_replica,
        "zero_stage": config.optimizer.zero_stage,
        "hidden_size": config.model.model_config.hidden_size,
    }


def torchtitan(folder: Path) -> dict[str, Any]:
    from torchtitan.config import ConfigManager  # type: ignore[import-not-found] # of another interpreter

    if importlib.util.find_spec("torchtitan.config.job_config"):
        config = ConfigManager().parse_args(["--job.config_file", str(folder / "job_config.toml")])
    else:
        config = ConfigManager().parse_args((folder / "torchtitan_options.txt").read_text().split())
    at = config.parallelism
    return {
        "gbs": config.training.global_batch_size,
        "seq_len": config.training.seq_len,
        "dp": at.data_parallel_replicate_degree * at.data_parallel_shard_degree,
        "tp": at.tensor_parallel_degree,
        "pp": at.pipeline_parallel_degree,
        "cp": at.context_parallel_degree,
        "steps_planned": config.training.steps,
    }


def megatron(folder: Path) -> dict[str, Any]:
    from megatron.training.arguments import parse_args  # type: ignore[import-not-found] # of another interpreter

    sys.argv = ["pretrain_gpt.py", *(folder / "megatron_arguments.txt").read_text().split()]
    args = parse_args()
    return {
        "tp": args.tensor_model_parallel_size,
        "pp": args.pipeline_model_parallel_size,
        "cp": args.context_parallel_size,
        "ep": args.expert_model_parallel_size,
        "mbs": args.micro_batch_size,
        "gbs": args.global_batch_size,
        "seq_len": args.seq_length,
        "num_layers": args.num_layers,
    }


def megatron_bridge(folder: Path) -> dict[str, Any]:
    """The overrides name fields of the sections of ConfigContainer, and each takes its value."""
    from megatron.bridge.models.gpt_provider import GPTModelProvider  # type: ignore[import-not-found] # as above
    from megatron.bridge.training import config as of  # type: ignore[import-not-found] # of another interpreter
    from omegaconf import OmegaConf  # type: ignore[import-not-found] # as above

    sections = {
        "model": GPTModelProvider,
        "train": of.TrainingConfig,
        "dataset": of.MockGPTDatasetConfig,
        "ddp": of.DistributedDataParallelConfig,
        "optimizer": of.OptimizerConfig,
        "logger": of.LoggerConfig,
        "profiling": of.ProfilingConfig,
    }
    found = OmegaConf.from_dotlist((folder / "bridge_overrides.txt").read_text().split())
    for section, values in found.items():
        known = sections[str(section)].__dataclass_fields__
        unknown = [name for name in values if name not in known and (section, name) != ("dataset", "seq_length")]
        if unknown:
            raise SystemExit(f"{section} has no {unknown}")
    model, train = found.model, found.train
    return {
        "tp": model.tensor_model_parallel_size,
        "pp": model.pipeline_model_parallel_size,
        "cp": model.context_parallel_size,
        "mbs": train.micro_batch_size,
        "gbs": train.global_batch_size,
    }


def hf_trainer(folder: Path) -> dict[str, Any]:
    from transformers import AutoConfig, HfArgumentParser, TrainingArguments  # type: ignore[import-not-found] # as above

    path = folder / "training_arguments.json"
    (args,) = HfArgumentParser(TrainingArguments).parse_dict(
        {**json.loads(path.read_text()), "deepspeed": None, "bf16": False, "use_cpu": True}, allow_extra_keys=True
    )
    return {
        **deepspeed(folder),
        "mbs": args.per_device_train_batch_size,
        "gas": args.gradient_accumulation_steps,
        "steps_planned": args.max_steps,
        "hidden_size": AutoConfig.from_pretrained(folder).hidden_size,
    }


def deepspeed(folder: Path) -> dict[str, Any]:
    """DeepSpeed's own checks of its file, as far as one process can make them."""
    from deepspeed.runtime.zero.config import get_zero_config  # type: ignore[import-not-found] # as above

    config = json.loads((folder / "ds_config.json").read_text())
    return {"zero_stage": int(get_zero_config(config).stage), "gbs": config["train_batch_size"]}


def litgpt(folder: Path) -> dict[str, Any]:
    from jsonargparse import ArgumentParser  # type: ignore[import-not-found] # as above
    from litgpt.pretrain import setup, validate_args  # type: ignore[import-not-found] # of another interpreter

    sys.path.insert(0, str(folder))  # the scripts start it there, and the data module lies beside
    parser = ArgumentParser()
    parser.add_argument("--config", action="config")
    parser.add_function_arguments(setup)
    args = parser.parse_args(["--config", str(folder / "hyperparameters.yaml")])
    made = parser.instantiate_classes(args)
    validate_args(made.train, made.eval, None, resume=False)  # arguments that the parser knows and the script refuses
    return {
        "mbs": args.train.micro_batch_size,
        "gbs": args.train.global_batch_size,
        "seq_len": args.train.max_seq_length,
        "gpus_per_node": args.devices,
        "num_nodes": args.num_nodes,
        "hidden_size": args.model_config.n_embd,
        "vocab_size": args.data.init_args.vocab_size,
    }


def axolotl(folder: Path) -> dict[str, Any]:
    import yaml
    from axolotl.utils.schemas.config import AxolotlInputConfig  # type: ignore[import-not-found] # as above

    config = AxolotlInputConfig(**yaml.safe_load((folder / "axolotl.yaml").read_text()))
    return {
        "mbs": config.micro_batch_size,
        "gas": config.gradient_accumulation_steps,
        "seq_len": config.sequence_len,
        "cp": config.context_parallel_size or 1,
        "steps_planned": config.max_steps,
    }


READERS = {
    "nanotron": nanotron,
    "torchtitan": torchtitan,
    "megatron": megatron,
    "megatron-bridge": megatron_bridge,
    "hf-trainer": hf_trainer,
    "litgpt": litgpt,
    "axolotl": axolotl,
}

if __name__ == "__main__":
    sys.meta_path.append(Kernels())
    if not hasattr(typing, "override"):  # of Python 3.12, for code that runs on it
        typing.override = lambda method: method  # type: ignore[attr-defined] # as it is there
    try:
        understood = READERS[sys.argv[1]](Path(sys.argv[2]))
    except ImportError as error:
        sys.stderr.write(f"{type(error).__name__}: {error}\n")
        sys.exit(NOT_THERE)
    print(json.dumps(understood))  # noqa: T201 - its answer
