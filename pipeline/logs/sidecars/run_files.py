"""Sidecars: settings from files that trainers and their users leave beside a log.

Formats: transformers trainer_callback.py TrainerState.save_to_json (`trainer_state.json`), trainer_pt_utils.py
save_metrics (`train_results.json`) and configuration_utils.py (`config.json`, the model's shape: see `model_file`);
accelerate's YAML (commands/config/config_args.py); DeepSpeed's configuration (docs/config-json); axolotl's YAML
(utils/schemas); NeMo's `cmd-args.log` (utils/exp_manager.py: the command line, with Hydra's overrides; its
`hparams.yaml` is Lightning's, see `hparams`); litgpt's `hyperparameters.yaml` (utils.py
save_hyperparameters); torchtitan's TOML (config/job_config.py). Pickles such as `training_args.bin` are not read. Only
`cmd-args.log` marks a run directory, as several runs may share any of the others.
"""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import yaml

from sweepscope.pipeline.io.yaml_text import safe_loader
from sweepscope.pipeline.logs.dialect import Sidecar
from sweepscope.pipeline.logs.sidecars import column_names, trainer_speed
from sweepscope.pipeline.logs.sidecars.model_file import read_model_config

_Node = Mapping[str, Any]

_DEEPEST = 8


def leaves(node: _Node) -> Iterator[tuple[str, Any]]:
    """Every value with its dotted path; deeper levels than in any of these files are left out.

    A section that YAML aliases repeat is read once: ten lines of aliases can mean billions of values.
    """
    return _leaves(node, "", 0, set())


def _leaves(node: _Node, path: str, depth: int, seen: set[int]) -> Iterator[tuple[str, Any]]:
    seen.add(id(node))
    for key, value in node.items():
        child = f"{path}.{key}" if path else str(key)
        if not isinstance(value, Mapping) or depth >= _DEEPEST:
            yield child, value
        elif id(value) not in seen:
            yield from _leaves(value, child, depth + 1, seen)


def _values(node: _Node, names: Mapping[str, str]) -> dict[str, str]:
    """Values at dotted paths, by column, without null, "auto" and -1 (no limit, or the remaining ranks).

    Of several paths of a column, which are its names in several versions, the last one that is there counts.
    """
    by_path = dict(leaves(node))
    values = {column: by_path[path] for path, column in names.items() if path in by_path}
    plain = {column: str(value) for column, value in values.items() if isinstance(value, str | int | float)}
    return {column: text for column, text in plain.items() if text not in ("", "auto", "-1")}


def _json(text: str) -> _Node:
    return mapping(json.loads(text))


def plain_yaml(text: str) -> _Node:
    """A mapping of plain YAML. Raises ValueError for other text."""
    try:
        return mapping(yaml.load(text, Loader=safe_loader(text)))  # noqa: S506 -- all of them are safe
    except yaml.YAMLError as error:  # also for tags of the trainer's classes
        raise ValueError(f"not plain YAML: {str(error).splitlines()[0]}") from error


def mapping(found: object) -> _Node:
    """`found`, if it is a mapping. Raises ValueError otherwise."""
    if not isinstance(found, dict):
        raise ValueError("not a mapping of names to values")
    return found


def not_empty(settings: dict[str, str], what: str) -> dict[str, str]:
    """`settings`, if there are any. Raises ValueError otherwise."""
    if not settings:
        raise ValueError(f"it holds no {what}")
    return settings


def read_trainer_state(text: str) -> Mapping[str, str]:
    """Settings of `trainer_state.json`, which has completed at `max_steps`. Raises ValueError for other JSON."""
    state = _json(text)
    step, last = state.get("global_step"), state.get("max_steps")
    if not isinstance(step, int) or not isinstance(last, int) or "log_history" not in state:
        raise ValueError("not the state of transformers' Trainer")
    ended = {"status_file": "completed"} if 0 < last <= step else {}
    return _values(state, column_names.TRAINER_STATE) | ended | trainer_speed.of_state(state)


def read_train_results(text: str) -> Mapping[str, str]:
    """Status, planned steps and batch from `train_results.json`, written after the training. Raises ValueError else."""
    results = _json(text)
    if not isinstance(results.get("train_runtime"), int | float):
        raise ValueError("it holds no train_runtime")
    return {"status_file": "completed"} | trainer_speed.of_results(results)


def read_deepspeed(text: str) -> Mapping[str, str]:
    """Settings of DeepSpeed's JSON. Raises ValueError for other JSON."""
    config = _json(text)
    settings = _values(config, column_names.DEEPSPEED)
    by_path = dict(leaves(config))
    for section, word in (("bf16", "bf16"), ("bfloat16", "bf16"), ("fp16", "fp16")):
        if by_path.get(f"{section}.enabled") is True:
            settings["precision"] = word
    if "zero_optimization" not in config and not settings:
        raise ValueError("not a configuration of DeepSpeed")
    return settings


def _recomputed(config: _Node) -> dict[str, str]:
    """Recomputation by the switch of transformers' Trainer, where it is stated: of every layer, or of none."""
    word = {True: "full", False: "none"}.get(config.get("gradient_checkpointing"))  # type: ignore[arg-type]  # any value
    return {"recompute": word} if word else {}


def read_training_arguments(text: str) -> Mapping[str, str]:
    """Settings of a JSON file of transformers' TrainingArguments. Raises ValueError for other JSON."""
    config = _json(text)
    if "output_dir" not in config or "per_device_train_batch_size" not in config:
        raise ValueError("it holds no output_dir and per_device_train_batch_size of TrainingArguments")
    precision = next((word for word in ("bf16", "fp16") if config.get(word) is True), None)
    found = _values(config, column_names.TRAINING_ARGUMENTS) | _recomputed(config)
    return found | ({"precision": precision} if precision else {})


def read_axolotl(text: str) -> Mapping[str, str]:
    """Settings of axolotl's YAML. Raises ValueError for other YAML."""
    config = plain_yaml(text)
    if "base_model" not in config:
        raise ValueError("it holds no base_model of axolotl")
    settings = _values(config, column_names.AXOLOTL)
    word = next((word for word in ("bf16", "fp16") if config.get(word) is True), None)
    return settings | _recomputed(config) | ({"precision": word} if word else {})


def read_nanotron(text: str) -> Mapping[str, str]:
    """Settings of nanotron's YAML (config/config.py Config). Raises ValueError for other YAML."""
    config = plain_yaml(text)
    if not all(isinstance(config.get(section), Mapping) for section in ("parallelism", "tokens")):
        raise ValueError("it holds no sections parallelism and tokens of nanotron")
    dtype = {"bfloat16": "torch.bfloat16", "float16": "torch.float16", "float32": "torch.float32"}
    model = config.get("model")
    word = dtype.get(str(model.get("dtype"))) if isinstance(model, Mapping) else None
    return _values(config, column_names.NANOTRON) | ({"arg:dtype": word} if word else {})


def read_accelerate(text: str) -> Mapping[str, str]:
    """Settings of accelerate's YAML. Raises ValueError for other YAML."""
    config = plain_yaml(text)
    if "distributed_type" not in config:
        raise ValueError("it holds no distributed_type of accelerate")
    settings = _values(config, column_names.ACCELERATE)
    if word := column_names.PRECISION.get(str(config.get("mixed_precision"))):
        settings["precision"] = word
    fsdp = config.get("fsdp_config")
    if config["distributed_type"] == "FSDP" and isinstance(fsdp, Mapping):
        # In FSDP2 a Boolean tells whether a layer's parameters are freed after its forward pass.
        reshards = {"True": "3", "False": "2"}.get(str(fsdp.get("fsdp_reshard_after_forward")))
        stage = (
            column_names.SHARDING.get(str(fsdp.get("fsdp_sharding_strategy", fsdp.get("fsdp_reshard_after_forward"))))
            or reshards
        )
        settings |= {"zero_stage": stage} if stage else {}
    return settings


def read_nemo_command(text: str) -> Mapping[str, str]:
    """Settings of NeMo's `cmd-args.log`, from the last part of Hydra overrides. Raises ValueError for other text."""
    if not re.search(r"\.py(?:\s|$)", text):
        raise ValueError("not a command line of NeMo")
    found: dict[str, str] = {}
    for path, value in re.findall(r"(?:^|\s)\+{0,2}((?:trainer|model|exp_manager)\.[\w.]+)=(\S+)", text):
        name, plain = path.rsplit(".", 1)[-1], value.strip("'\"")
        if name == "precision" and plain in column_names.PRECISION:
            found["precision"] = column_names.PRECISION[plain]
        elif name in column_names.NEMO_COMMAND and plain not in ("null", "-1"):
            found[column_names.NEMO_COMMAND[name]] = plain
    return found


def read_litgpt(text: str) -> Mapping[str, str]:
    """Settings of litgpt's `hyperparameters.yaml`. Raises ValueError for other YAML."""
    return not_empty(_values(plain_yaml(text), column_names.LITGPT), "hyperparameter of litgpt")


def read_torchtitan(text: str) -> Mapping[str, str]:
    """Settings of torchtitan's TOML. Raises ValueError for other text."""
    config = tomllib.loads(text)
    if not isinstance(config.get("training"), dict):
        raise ValueError("it holds no [training] of torchtitan")
    return _values(config, column_names.TORCHTITAN)


def beside(read: Callable[[str], Mapping[str, str]], *patterns: str) -> tuple[Sidecar, ...]:
    """Sidecars for configurations that several runs may share."""
    return tuple(Sidecar(pattern, "config", read, marks_run=False) for pattern in patterns)


HUGGINGFACE = (
    *beside(read_model_config, "config.json"),
    *beside(read_accelerate, "*accelerate*.yaml", "*accelerate*.yml", "default_config.yaml", "fsdp*.yaml"),
    *beside(read_trainer_state, "trainer_state.json"),
    *beside(read_train_results, "train_results.json"),
    *beside(read_training_arguments, "training_arguments*.json"),
)
NANOTRON = beside(read_nanotron, "nanotron*.yaml", "nanotron*.yml")
DEEPSPEED = beside(read_deepspeed, "ds_config*.json", "deepspeed*.json")
AXOLOTL = beside(read_axolotl, "axolotl*.yaml", "axolotl*.yml")
NEMO = (Sidecar("cmd-args.log", "config", read_nemo_command),)
LITGPT = beside(read_litgpt, "hyperparameters.yaml")
TORCHTITAN = beside(read_torchtitan, "job_config*.toml", "train_config*.toml", "config.toml")
