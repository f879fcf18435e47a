"""Lightning's `hparams.yaml`, as a Sidecar of NeMo and of Lightning.

Formats: lightning/pytorch/core/saving.py save_hparams_to_yaml, which dumps whatever a script calls its hyperparameters:
flat names, the sections of NeMo's configuration, and objects of the script's own classes behind `!!python/` tags. A tag
is never followed: an object's state is read as the mapping or the list that it was written as.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import yaml

from sweepscope.pipeline.logs.sidecars.run_files import NEMO_NAMES, beside, known, leaves, mapping

_TEXTS = ("str", "unicode")


def _untagged(loader: yaml.SafeLoader, name: str, node: yaml.Node) -> Iterator[Any]:
    # In two steps, as yaml's own constructors do: an object may hold itself.
    if isinstance(node, yaml.MappingNode):
        named: dict[Any, Any] = {}
        yield named
        named.update(loader.construct_mapping(node))
    elif isinstance(node, yaml.SequenceNode):
        listed: list[Any] = []
        yield listed
        listed.extend(loader.construct_sequence(node))
    else:
        yield node.value if name in _TEXTS else None  # else a class or a function by its name


def _plain(text: str) -> object:
    """Mappings, lists, texts and numbers, whatever the tags say."""
    loader = yaml.SafeLoader(text)
    loader.yaml_multi_constructors = {"tag:yaml.org,2002:python/": _untagged, "!": _untagged}
    try:
        return loader.get_single_data()
    finally:
        loader.dispose()


def _read(text: str) -> Mapping[str, str]:
    """NeMo's names wherever they stand in it, by column. Raises ValueError for what is no YAML or no mapping."""
    try:
        config = mapping(_plain(text))
    except yaml.YAMLError as error:
        raise ValueError(f"no YAML: {str(error).splitlines()[0]}") from error
    found: dict[str, str] = {}
    for path, value in leaves(config):
        column = NEMO_NAMES.get(path.rsplit(".", 1)[-1])
        if column and isinstance(value, str | int | float):
            found.setdefault(column, str(value))
    return found


def read_nemo(text: str) -> Mapping[str, str]:
    """NeMo's configuration. Raises ValueError where there is none."""
    return known(dict(_read(text)), "name of NeMo's configuration")


def read_own(text: str) -> Mapping[str, str]:
    """Names of a script's own: nobody knows what they mean, so they say nothing. Raises ValueError for NeMo's."""
    if _read(text):
        raise ValueError("the configuration is NeMo's")
    return {}


NEMO = beside(read_nemo, "hparams.yaml")
LIGHTNING = beside(read_own, "hparams.yaml")
