"""What ran a measurement, in words: framework, its version, torch, NCCL, cluster.

Runs of one layout that differ in one of these are no repeats of each other, so a text about one of them has to name
the difference.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any

IMPLEMENTATION = ("framework", "framework_version", "torch_version", "nccl_version", "cluster")
"""Columns of `ranked_layouts`, in the order in which they are named."""
OTHER = "other"
"""Framework of logs in a form that no dialect describes: no name to show."""
_HASH = re.compile(r"[0-9a-f]{16,64}")
_UNKNOWN = "unknown"
_SHORT = 12  # letters of a commit's hash that tell it from every other in practice


def framework_name(framework: str | None) -> str | None:
    """A framework as a page names it: one without a parser of its own by what it is.

    >>> framework_name("nanotron"), framework_name("other"), framework_name(None)
    ('nanotron', 'unnamed trainer', None)
    """
    return "unnamed trainer" if framework == OTHER else framework


def differing(rows: Iterable[Mapping[str, Any]]) -> tuple[str, ...]:
    """Names of IMPLEMENTATION in which `rows` differ, unknown as a value of its own.

    >>> differing([{"framework_version": "1"}, {"framework_version": None}])
    ('framework_version',)
    """
    known = list(rows)
    return tuple(name for name in IMPLEMENTATION if len({row.get(name) for row in known}) > 1)


def label(row: Mapping[str, Any], names: Iterable[str]) -> str:
    """The values of `names` one after another, for the label of a row.

    >>> label({"framework_version": "0.2", "cluster": None}, ["framework_version", "cluster"])
    'version 0.2 · cluster unknown'
    >>> label({"framework": "torchtitan", "framework_version": "0.2"}, ["framework", "framework_version"])
    'torchtitan 0.2'
    """
    return " · ".join(_parts(row, names))


def phrase(row: Mapping[str, Any], names: Iterable[str]) -> str:
    """The same within a sentence, after a blank; empty without names.

    >>> phrase({"framework_version": "0.2", "cluster": "North"}, ["framework_version", "cluster"])
    ' in version 0.2 on cluster North'
    >>> phrase({"torch_version": None}, ["torch_version"])
    ' with an unknown torch'
    >>> phrase({"framework": "other"}, ["framework"])
    ''
    """
    before = {"torch": "with", "NCCL": "with", "cluster": "on"}
    phrases = []
    for part in _parts(row, names):
        noun, _, value = part.rpartition(" ")
        phrases.append(f" {before.get(noun, 'in')} {f'an unknown {noun}' if value == _UNKNOWN else part}")
    return "".join(phrases)


def _parts(row: Mapping[str, Any], names: Iterable[str]) -> list[str]:
    chosen = set(names)
    version = _short(row.get("framework_version"))
    parts = []
    if "framework" in chosen and row["framework"] != OTHER:
        known = version if "framework_version" in chosen and row.get("framework_version") else ""
        parts.append(f"{row['framework'] or f'framework {_UNKNOWN}'} {known}".strip())
    if "framework_version" in chosen and not ("framework" in chosen and row.get("framework_version")):
        parts.append(f"version {version}")
    words = {"torch_version": "torch", "nccl_version": "NCCL", "cluster": "cluster"}
    return parts + [f"{word} {_short(row.get(name))}" for name, word in words.items() if name in chosen]


def _short(value: str | None) -> str:
    """A version as it is shown: a commit's hash by its first letters.

    >>> _short("2.4.0+cu121"), _short("9f3c0a7712aa41d0bb5e0c5d61fbd0a1e2c4f6a8"), _short(None)
    ('2.4.0+cu121', '9f3c0a7712aa', 'unknown')
    """
    if value is None:
        return _UNKNOWN
    return value[:_SHORT] if _HASH.fullmatch(value) else value
