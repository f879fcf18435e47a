"""Lightning's `hparams.yaml`, as a Sidecar of NeMo and of Lightning.

Formats: lightning/pytorch/core/saving.py save_hparams_to_yaml, which dumps the hyperparameters of a script: flat names,
the sections of NeMo's configuration, and objects of the script's classes with `!!python/` tags. No tag is resolved: the
state of an object is read as the mapping or list that was written.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import yaml

from sweepscope.pipeline.io.yaml_text import safe_loader
from sweepscope.pipeline.logs import synonyms
from sweepscope.pipeline.logs.dialect import Sidecar
from sweepscope.pipeline.logs.sidecars.column_names import NEMO_NAMES
from sweepscope.pipeline.logs.sidecars.run_files import beside, leaves, mapping, not_empty

_TEXTS = ("str", "unicode")


def _untagged(loader: yaml.SafeLoader, name: str, node: yaml.Node) -> Iterator[Any]:
    # In two steps, as yaml's own constructors do: an object may contain itself.
    if isinstance(node, yaml.MappingNode):
        named: dict[Any, Any] = {}
        yield named
        named.update(loader.construct_mapping(node))
    elif isinstance(node, yaml.SequenceNode):
        listed: list[Any] = []
        yield listed
        listed.extend(loader.construct_sequence(node))
    else:
        yield node.value if name in _TEXTS else None  # otherwise the name of a class or function


def plain(text: str) -> object:
    """Mappings, lists, texts and numbers, without resolving tags."""
    loader = safe_loader(text)(text)
    loader.yaml_multi_constructors = {"tag:yaml.org,2002:python/": _untagged, "!": _untagged}
    try:
        return loader.get_single_data()
    finally:
        loader.dispose()


_OWN = (
    *("mbs", "gbs", "gas", "seq_len", "num_layers", "hidden_size", "num_heads", "num_kv_heads", "ffn_hidden_size"),
    *("vocab_size", "num_experts", "num_nodes", "steps_planned"),
)
"""Columns that hyperparameters of a script's own state. A loader's batch is that of one process."""

_COMMON = ("num_layers", "hidden_size", "ffn_hidden_size", "num_attention_heads", "sequence_parallel")
"""Names of NeMo's that any script may have."""


def _config(text: str) -> Mapping[str, Any]:
    try:
        return mapping(plain(text))
    except yaml.YAMLError as error:
        raise ValueError(f"not YAML: {str(error).splitlines()[0]}") from error


def _of_nemo(config: Mapping[str, Any]) -> dict[str, str]:
    """Values by column, from NeMo's names at any depth; none where all names are others', too."""
    found: dict[str, str] = {}
    is_nemos = False
    for path, value in leaves(config):
        name = path.rsplit(".", 1)[-1]
        column = NEMO_NAMES.get(name)
        if column and isinstance(value, str | int | float):
            found.setdefault(column, str(value))
            is_nemos = is_nemos or name not in _COMMON
    return found if is_nemos else {}


def read_nemo(text: str) -> Mapping[str, str]:
    """Settings of NeMo's configuration. Raises ValueError for another file."""
    return not_empty(_of_nemo(_config(text)), "setting of NeMo")


def read_own(text: str) -> Mapping[str, str]:
    """Whole numbers under the usual names, unless two of one column differ. Raises ValueError for NeMo's file.

    Those of the Trainer are a script's hyperparameters, too: its `devices` are those of a node (trainer/trainer.py).
    """
    config = _config(text)
    if _of_nemo(config):
        raise ValueError("the configuration is NeMo's")
    return own_settings(leaves(config)) | _of_trainer(config)


def _of_trainer(config: Mapping[str, Any]) -> dict[str, str]:
    """Processes of a node, and replicas where the strategy is one of those that split no layer."""
    named: dict[str, set[Any]] = {"devices": set(), "num_nodes": set(), "strategy": set()}
    for path, value in leaves(config):
        if (name := path.rsplit(".", 1)[-1]) in named and isinstance(value, int | str) and not isinstance(value, bool):
            named[name].add(value)
    devices, nodes, strategy = (values.pop() if len(values) == 1 else None for values in named.values())
    if not isinstance(devices, int) or devices < 1:
        return {}
    is_replicated = isinstance(strategy, str) and re.match("ddp|fsdp|deepspeed", strategy)
    replicas = {"dp": str(devices * nodes)} if is_replicated and isinstance(nodes, int) and nodes > 0 else {}
    return {"gpus_per_node": str(devices), **replicas}


def own_settings(found: Iterable[tuple[str, Any]]) -> dict[str, str]:
    """Whole numbers by column, of those with their dotted paths under the usual names, unless two of one differ."""
    values: dict[str, set[int]] = {}
    for path, value in found:
        name = synonyms.words(path.rsplit(".", 1)[-1])
        column, doubt = synonyms.setting_of(name) or ("", 0)
        if re.fullmatch(synonyms.AMBIGUOUS_BATCH, name):
            column, doubt = "mbs", 0
        if column in _OWN and not doubt and isinstance(value, int) and not isinstance(value, bool) and value > 0:
            values.setdefault(column, set()).add(value)
    return {column: str(numbers.pop()) for column, numbers in values.items() if len(numbers) == 1}


NEMO = beside(read_nemo, "hparams.yaml")
LIGHTNING = (Sidecar("hparams.yaml", "config", read_own, marks_run=False, has_users_names=True),)
