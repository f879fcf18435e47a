"""Settings from directory and file names, the weakest source of all."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from itertools import combinations

from sweepscope.pipeline.reference.model_identity import registered_name

# picotron create_config.py: dp2_tp1_pp1_cp1_mbs8_ga4_sl256; nanotron scaling_benchmarks.py:
# 8_dp2_tp4_pp1_acc16_mbs2_seq4096_zero1_tpmodeRED_vocab131k; by hand: run-tp2-lbs160-seq128.
_TOKENS: Mapping[str, str] = (
    {"dp": "dp", "tp": "tp", "pp": "pp", "cp": "cp", "ep": "ep", "vpp": "vpp"}
    | {"mbs": "mbs", "lbs": "mbs", "ga": "gas", "gas": "gas", "acc": "gas", "gradacc": "gas"}
    | {"sl": "seq_len", "seq": "seq_len", "seqlen": "seq_len", "gbs": "gbs"}
    | {"zero": "zero_stage", "z": "zero_stage", "nodes": "num_nodes", "gpus": "num_gpus"}
    # Of a process or of all: the dialect decides. Replicas that the launcher may not have started.
    | {"bs": "arg:named_batch", "ddp": "arg:named_ranks"}
)
_AMBIGUOUS = frozenset({"ep", "acc"})
"""Tokens that may be an epoch (`ep1055.log`) or an accuracy where no other one is present."""
_UNSURE = frozenset({"bs", "ddp"})
_NAMES = "|".join(sorted(_TOKENS, key=len, reverse=True))
_COUNT = re.compile(r"(?:^|[_\-.,/])(\d{1,6})[_\-]?(gpu|node)s?(?=$|[_\-.,/])", re.IGNORECASE)
"""`16gpus`, `4-nodes`."""
_SIZE = re.compile(r"(?i)\d(?:\.\d+)?[bm](?![a-z0-9])")
"""What ends the name of a model: `8b`, `1.5B`, `350m`."""
_MOST_PIECES = 5
"""Words of such a name, `llama-3.1-8b-instruct-hf`."""
_TOKEN = re.compile(rf"(?:^|[_\-.,/])({_NAMES})[=\-]?(\d{{1,7}})(?=$|[_\-.,/])", re.IGNORECASE)
TOKEN_WORDS = rf"(?i)(?:^|[^a-z0-9])(?:{_NAMES})[=\-]?[0-9]"
"""Found in any name with a setting, whatever parts its words."""


def read_folder_name(name: str) -> dict[str, str]:
    """Settings in a directory or file name; a token with two different values is left out.

    >>> read_folder_name("dp2_tp1_pp1_cp1_mbs8_ga4_sl256")["seq_len"]
    '256'
    >>> read_folder_name("checkpoints-2026"), read_folder_name("ep1055.log"), read_folder_name("tp8_ep4")
    ({}, {}, {'tp': '8', 'ep': '4'})
    >>> read_folder_name("llama3-8b_16gpu_mbs2")
    {'model': 'Llama 3 8B', 'num_gpus': '16', 'mbs': '2'}
    """
    found: dict[str, set[str]] = {"model": set(_models(name))} if _SIZE.search(name) else {}
    for count, of in _COUNT.findall(name):
        found.setdefault(f"num_{of.lower()}s", set()).add(str(int(count)))
    tokens: set[str] = set()
    start = 0
    while match := _TOKEN.search(name, start):
        found.setdefault(_TOKENS[match[1].lower()], set()).add(str(int(match[2])))
        tokens.add(match[1].lower())
        start = match.end()
    known = tokens - _UNSURE
    if known <= _AMBIGUOUS and len(known) < 2:
        found = {key: values for key, values in found.items() if key.startswith(("arg:", "model", "num_"))}
    return {key: values.pop() for key, values in found.items() if len(values) == 1}


def _models(name: str) -> Iterator[str]:
    """Registered models that a name has, each with its size: `llama3-8b_16gpu_tp2`."""
    pieces = [*re.finditer(r"[^_/,+= ]+?(?=[-_/,+= ]|$)", name)]
    for first, last in combinations(range(len(pieces) + 1), 2):
        text = name[pieces[first].start() : pieces[last - 1].end()]
        if last - first <= _MOST_PIECES and _SIZE.search(pieces[last - 1][0]) and (known := registered_name(text)):
            yield known
