"""Lightning's `hparams.yaml`, as a Sidecar of NeMo and of Lightning.

Formats: lightning/pytorch/core/saving.py save_hparams_to_yaml, which dumps the hyperparameters of a script: flat names,
the sections of NeMo's configuration, and objects of the script's classes with `!!python/` tags. No tag is resolved: the
state of an object is read as the mapping or list that was written.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import yaml

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


def _plain(text: str) -> object:
    """Mappings, lists, texts and numbers, without resolving tags."""
    loader = yaml.SafeLoader(text)
    loader.yaml_multi_constructors = {"tag:yaml.org,2002:python/": _untagged, "!": _untagged}
    try:
        return loader.get_single_data()
    finally:
        loader.dispose()


def _read(text: str) -> Mapping[str, str]:
    """Values by column, from NeMo's names at any depth. Raises ValueError for other text than a YAML mapping."""
    try:
        config = mapping(_plain(text))
    except yaml.YAMLError as error:
        raise ValueError(f"not YAML: {str(error).splitlines()[0]}") from error
    found: dict[str, str] = {}
    for path, value in leaves(config):
        column = NEMO_NAMES.get(path.rsplit(".", 1)[-1])
        if column and isinstance(value, str | int | float):
            found.setdefault(column, str(value))
    return found


def read_nemo(text: str) -> Mapping[str, str]:
    """Settings of NeMo's configuration. Raises ValueError for another file."""
    return not_empty(dict(_read(text)), "setting of NeMo")


def read_own(text: str) -> Mapping[str, str]:
    """No settings, since the names of a script are unknown. Raises ValueError for NeMo's configuration."""
    if _read(text):
        raise ValueError("the configuration is NeMo's")
    return {}


NEMO = beside(read_nemo, "hparams.yaml")
LIGHTNING = beside(read_own, "hparams.yaml")
