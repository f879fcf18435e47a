"""Files that Weights & Biases keeps of a run, whatever its trainer: `config.yaml` and `wandb-metadata.json`.

Formats: wandb sdk/lib/config_util.py dict_add_value_dict (each name of the configuration with its `value`, beside
`_wandb` or `wandb_version`), sdk/internal/system/system_info.py (`wandb-metadata.json`: the machine of the process that
logs).
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from sweepscope.pipeline.logs import synonyms
from sweepscope.pipeline.logs.sidecars.hparams import own_settings
from sweepscope.pipeline.logs.sidecars.run_files import beside, leaves, mapping, plain_yaml

_MARKS = ("_wandb", "wandb_version")
_DEGREES = ("tp", "pp", "cp", "ep", "dp", "vpp")
_ALSO = {"block_size": "seq_len"}
"""Names that tell less elsewhere. Beside a configuration's batch they are the trainer's."""


def read_config(text: str) -> Mapping[str, str]:
    """Settings of W&B's `config.yaml`; none of another file of that name, which is common. Raises ValueError else."""
    config = plain_yaml(text)
    if not any(mark in config for mark in _MARKS):
        return {}
    entries = {str(name): entry for name, entry in config.items() if name not in _MARKS and isinstance(entry, Mapping)}
    return settings_of_values({name: entry["value"] for name, entry in entries.items() if "value" in entry})


def settings_of_values(values: Mapping[str, Any]) -> Mapping[str, str]:
    """Settings of a configuration as W&B keeps it: a value by each name."""
    found = {**_degrees(values), **own_settings(leaves(values))}
    for name, column in _ALSO.items():
        if isinstance(value := values.get(name), int) and value > 0:
            found.setdefault(column, str(value))
    words = {word for name, value in values.items() if (word := _word("precision", name, value))}
    return found | ({"precision": words.pop()} if len(words) == 1 else {})


def _degrees(values: Mapping[str, Any]) -> dict[str, str]:
    """Degrees of parallelism: whole numbers under a sure name, where the name or one above it speaks of parallelism.

    `tp` alone is anything: true positives, a tool's path. Beside another degree in the same section it is one, too.
    """
    found: dict[str, str] = {}
    short: dict[str, dict[str, str]] = {}
    for path, value in leaves(values):
        section, _, name = path.rpartition(".")
        column, doubt = synonyms.setting_of(synonyms.words(name)) or ("", 0)
        if column in _DEGREES and not doubt and isinstance(value, int) and not isinstance(value, bool) and value > 0:
            if "parallel" in synonyms.words(path):
                found.setdefault(column, str(value))
            else:
                short.setdefault(section, {})[column] = str(value)
    return {
        **{name: value for degrees in short.values() if len(degrees) > 1 for name, value in degrees.items()},
        **found,
    }


def _word(column: str, name: str, value: Any) -> str | None:
    flag, meant = synonyms.FLAGS.get(synonyms.words(name), ("", {}))
    return meant.get(str(value).lower()) if flag == column else None


def read_metadata(text: str) -> Mapping[str, str]:
    """The accelerator of `wandb-metadata.json`, and how many its machine has. Raises ValueError for other JSON."""
    metadata = mapping(json.loads(text))
    if "host" not in metadata and "startedAt" not in metadata:
        raise ValueError("not the metadata of a run of W&B")
    name, count = metadata.get("gpu"), metadata.get("gpu_count")
    found = {"accelerator": name} if isinstance(name, str) and name else {}
    return found | ({"gpus_per_node": str(count)} if isinstance(count, int) and count > 0 else {})


WANDB = (*beside(read_config, "config.yaml"), *beside(read_metadata, "wandb-metadata.json"))
