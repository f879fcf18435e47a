"""A run's configuration as facts: each value with where it comes from and what contradicts it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import polars as pl

from sweepscope.dashboard.format.columns import column_label, names, value_text
from sweepscope.dashboard.format.numbers import number

GROUPS: dict[str, tuple[str, ...]] = {
    "Layout": names(
        "dp tp pp cp ep vpp zero_stage dp_replicate mbs gas gbs gbs_tokens recompute sequence_parallel precision "
        "pipeline_schedule variant"
    ),
    "Model": names(
        "params active_params num_layers hidden_size num_heads num_kv_heads ffn_hidden_size vocab_size "
        "tie_word_embeddings num_experts experts_per_token seq_len"
    ),
    "Place": names("cluster accelerator num_nodes gpus_per_node num_gpus job_id"),
    "Software": names("framework framework_version torch_version cuda_version nccl_version"),
}
_SOURCES = {
    "config_file": "config file",
    "argument_dump": "argument print",
    "log_line": "log",
    "command_line": "command line",
    "named_config": "config file named by the command",
    "launch_script": "launch script beside the log",
    "dialect_file": "dialect file",
    "stated": "stated by you",
    "stated_override": "stated by you, overrides",
    "folder_name": "folder name",
    "published_table": "published table",
    "result_table": "table of results",
    "derived": "derived",
    "assumed": "assumed",
}


@dataclass(frozen=True)
class Fact:
    """One value of a run. `source` and `contradiction` are words, empty when the store has none."""

    name: str
    label: str
    value: str
    source: str = ""
    contradiction: str = ""


def facts(run: dict[str, Any], settings: pl.DataFrame, group: str) -> list[Fact]:
    """Known values of one of GROUPS, in its order; values that were not logged are left out.

    `settings` are the rows of `queries.run.settings`.
    """
    by_name: dict[str, list[dict[str, Any]]] = {}
    for row in settings.iter_rows(named=True):
        by_name.setdefault(row["name"], []).append(row)
    out = []
    for name in GROUPS[group]:
        # a dense model activates all it has: once is enough
        if run.get(name) is None or (name == "active_params" and run[name] == run["params"]):
            continue
        rows = by_name.get(name, [])
        used = next((row for row in rows if row["is_used"]), None)
        out.append(
            Fact(
                name=name,
                label=setting_label(name),
                value=setting_text(name, run[name]),
                source=source_words(used) if used else "",
                contradiction=contradiction(rows),
            )
        )
    return out


_LABELS = {
    "gbs_tokens": "Batch in tokens",
    "torch_version": "PyTorch",
    "cuda_version": "CUDA or ROCm",
    "nccl_version": "NCCL",
}
"""Names of values where they are not those of their columns."""


def setting_label(name: str) -> str:
    """Name of a setting as readers see it."""
    return _LABELS.get(name) or column_label(name)


def setting_text(name: str, value: Any) -> str:
    """A value with its unit in words."""
    if name in ("params", "active_params"):
        return f"{value / 1e9:,.3g} billion" if value >= 1e9 else f"{value / 1e6:,.3g} million"
    if name == "gbs":
        return f"{number(value)} sequences"
    if name == "precision":
        return str(value).upper()
    return number(value) if name == "gbs_tokens" else value_text(name, value)


def source_words(row: dict[str, Any]) -> str:
    """Source of a value: file and line.

    >>> source_words({"setting_source": "log_line", "line_no": 4012})
    'log, line 4,012'
    """
    words = _SOURCES.get(row["setting_source"], str(row["setting_source"]))
    # a derived or assumed value is in no line, whatever row it belongs to
    is_written = row["line_no"] is not None and row["setting_source"] not in ("derived", "assumed")
    return f"{words}, line {number(row['line_no'])}" if is_written else words


def contradiction(rows: list[dict[str, Any]]) -> str:
    """Values of other sources that contradict the value in use; empty when they agree.

    >>> contradiction([
    ...     {"is_used": True, "value": "5", "setting_source": "log_line", "line_no": 4},
    ...     {"is_used": False, "value": "4", "setting_source": "folder_name", "line_no": None},
    ... ])
    'folder name says 4'
    """
    used = next((row["value"] for row in rows if row["is_used"]), None)
    others = [row for row in rows if not row["is_used"] and not _same(row["value"], used)]
    return ", ".join(f"{source_words(row)} says {row['value']}" for row in others)


def _same(left: str | None, right: str | None) -> bool:
    """Equal as text, or as numbers ("4" and "4.0" agree)."""
    if left is None or right is None or left.strip().lower() == right.strip().lower():
        return left == right or (left is not None and right is not None)
    try:
        return float(left) == float(right)
    except ValueError:
        return False


def conflicts(settings: pl.DataFrame) -> int:
    """Number of settings on which two sources disagree."""
    names = settings["name"].unique().to_list()
    return sum(bool(contradiction(settings.filter(pl.col("name") == name).to_dicts())) for name in names)
