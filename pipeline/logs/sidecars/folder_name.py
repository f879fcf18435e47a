"""Settings from directory and file names, the weakest source of all."""

from __future__ import annotations

import re
from collections.abc import Mapping

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
_TOKEN = re.compile(rf"(?:^|[_\-.,/])({_NAMES})[=\-]?(\d{{1,7}})(?=$|[_\-.,/])", re.IGNORECASE)
TOKEN_WORDS = rf"(?i)(?:^|[^a-z0-9])(?:{_NAMES})[=\-]?[0-9]"
"""Found in any name with a setting, whatever parts its words."""


def read_folder_name(name: str) -> dict[str, str]:
    """Settings in a directory or file name; a token with two different values is left out.

    >>> read_folder_name("dp2_tp1_pp1_cp1_mbs8_ga4_sl256")["seq_len"]
    '256'
    >>> read_folder_name("checkpoints-2026"), read_folder_name("ep1055.log"), read_folder_name("tp8_ep4")
    ({}, {}, {'tp': '8', 'ep': '4'})
    """
    found: dict[str, set[str]] = {}
    tokens: set[str] = set()
    start = 0
    while match := _TOKEN.search(name, start):
        found.setdefault(_TOKENS[match[1].lower()], set()).add(str(int(match[2])))
        tokens.add(match[1].lower())
        start = match.end()
    known = tokens - _UNSURE
    if known <= _AMBIGUOUS and len(known) < 2:
        found = {key: values for key, values in found.items() if key.startswith("arg:")}
    return {key: values.pop() for key, values in found.items() if len(values) == 1}
