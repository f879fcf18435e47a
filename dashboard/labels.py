"""Names, units and numbers as readers see them. Units come from `schemas`; nothing here knows a page.

Base units (bytes, fractions, seconds) live in the store and in every CSV; GiB and percent exist only here.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

import polars as pl

from schemas.column import Column
from schemas.columns import COLUMNS

NBSP = "\u00a0"  # between number and unit, so that a line never breaks there
MINUS = "\u2212"
MISSING = "\u2013"
GIB = 2**30

# Labels that the column's own name does not give.
_LABELS = {
    "run_id": "Run",
    "num_nodes": "Nodes",
    "num_gpus": "GPUs",
    "gpus_per_node": "GPUs per node",
    "params": "Parameters",
    "active_params": "Active parameters",
    "seq_len": "Sequence",
    "gbs": "Global batch",
    "gbs_tokens": "Batch",
    "zero_stage": "ZeRO",
    "tokens_per_s_per_gpu": "Tokens/s/GPU",
    "tokens_per_s": "Tokens/s",
    "model_tflops_per_gpu": "Model TFLOP/s/GPU",
    "tflops_per_gpu": "TFLOP/s/GPU",
    "tflops_per_gpu_logged": "TFLOP/s/GPU as logged",
    "mfu_logged": "MFU as logged",
    "mfu_basis": "MFU basis",
    "mfu_note": "Note on MFU",
    "mfu_ratio": "Logged over recomputed MFU",
    "mem_peak_allocated_bytes": "Peak allocated",
    "mem_peak_reserved_bytes": "Peak reserved",
    "mem_allocated_bytes": "Allocated",
    "mem_reserved_bytes": "Reserved",
    "runner_up_tokens_per_s_per_gpu": "Runner-up tokens/s/GPU",
    "rank_in_cell": "Rank",
    "rank_from": "From rank",
    "rank_to": "To rank",
    "host_from": "From",
    "host_to": "To",
    "cell_state": "State",
    "cell_reason": "Reason",
    "runs_tried": "Tried",
    "runs_completed": "Completed",
    "runs_quarantined": "Quarantined",
    "line_no": "Line",
    "source_path": "Source",
    "is_tie": "Tie",
    "is_used": "Used",
    "setting_source": "Stands in",
    "num_layers": "Layers",
    "num_heads": "Heads",
    "num_kv_heads": "KV heads",
    "num_experts": "Experts",
    "ffn_hidden_size": "FFN width",
    "vocab_size": "Vocabulary",
    "tie_word_embeddings": "Tied embeddings",
    "steps_in_row": "Steps in the row",
    "error": "Reason",
    "advice": "What to do",
    "raw": "As it stands there",
    "value": "Value",
    "runs_failed": "Failed",
    "runs_judged": "Judged",
    "runs_oom": "OOM",
    "runs_hang": "Hang",
    "runs_infra": "Infrastructure",
    "runs_timeout": "Time limit",
    "runs_crash": "Crash",
    "runs_unexplained": "No reason",
    "failure_rate_low": "From",
    "failure_rate_high": "To",
    "gpu_hours": "Took",
    "gpu_hours_lost": "Lost",
    "gpu_hours_completed": "Completed",
    "gpu_hours_oom": "OOM",
    "gpu_hours_hang": "Hang",
    "gpu_hours_infra": "Infrastructure",
    "gpu_hours_timeout": "Time limit",
    "gpu_hours_crash": "Crash",
    "gpu_hours_unexplained": "No reason",
    "gpu_hours_undecided": "Stopped or unknown",
    "gpu_hours_queued": "Queued",
    "gpu_hours_until_winner": "Until the winners",
    "gpu_hours_of_cells_in_order": "Of those cells",
    "runs_without_gpu_hours": "Runs of unknown cost",
    "failures_without_gpu_hours": "Failures of unknown cost",
    "evidence_line_no": "Evidence line",
    "infra_failures": "By the machines",
    "nccl_rule": "Rule",
    "nccl_flavour": "Library",
    "nranks_max": "Ranks",
    "nranks": "Ranks",
    "num_communicators": "Communicators",
    "num_channels": "Channels",
    "num_warns": "Warnings",
    "num_hangs": "Hangs",
    "nccl_env": "Environment",
    "op": "Operation",
    "busbw_bytes_per_s": "Bus bandwidth",
    "best_busbw_bytes_per_s": "Best of the files",
    "last_enqueued_seq": "Last enqueued",
    "last_started_seq": "Last started",
    "last_completed_seq": "Last completed",
    "ranks_reporting": "Waited in it",
    "ranks_silent": "Silent",
    "ranks_elsewhere": "Waited elsewhere",
    "suspect_reason": "Why",
    "evidence": "What was found",
    "remedy": "What to look at",
    "fact_source": "Source of the rule",
    "waited_s": "Waited, s",
    "est_profile": "Constants",
    "est_mfu": "Estimated MFU",
    "est_step_time_s": "Estimated step time",
    "est_mem_bytes": "Estimated peak",
    "likely_mfu": "Likely MFU",
    "gain": "Expected gain",
    "chance": "Chance to win",
    "test_gpu_hours": "A test takes",
    "gain_per_gpu_hour": "Gain per GPU-hour",
    "believed_step_time_s": "Expected step",
    "believed_lo_s": "From",
    "believed_hi_s": "To",
    "tried": "Tried before",
    "why": "Why",
    "says": "Rule",
    "tested": "Cells that test it",
    "held": "Held in",
    "hit_rate": "Held",
    "selects": "By chance",
    "winner_rate": "Wins",
    "regret": "Best loses",
    "typical_regret": "Typical loses",
    "other_regret": "Others lose",
    "est_mfu_lo": "From",
    "est_mfu_hi": "To",
    "est_penalty": "Times as long",
    "need_bytes": "Memory needed",
    "model_size": "Model",
    "time_ratio": "Median ratio",
    "time_ratio_p10": "10 %",
    "time_ratio_p90": "90 %",
    "time_error": "Median error",
    "mem_runs": "With memory",
    "mem_ratio": "Memory ratio",
    "mib": "MiB",
    "difference_mib": "Difference, MiB",
    "against_mib": "Against, MiB",
    "against_blocks": "Blocks against",
    "eps_frag": "Reserved beyond allocated",
    "eps_frag_low": "10 %",
    "eps_frag_high": "90 %",
    "eps_frag_max": "Most",
    "est_eps_frag": "Allowed in estimates",
    "mem_used_max_bytes": "GPU in use",
    "mem_total_bytes": "Card",
    "verdict_evidence": "The bytes that show it",
    "mem_origin": "Known from",
    "fragmentation_max_bytes": "At most",
    "mem_error": "Memory error",
    "dp_replicate": "Copies of what ZeRO shards",
    "predicted": "Predicted",
    "unseen_median_error": "Median error",
    "unseen_mean_error": "Mean error",
    "interval_coverage": "In their 80 % interval",
    "age_days": "Age, days",
    "ceiling_mfu": "Estimate allows",
    "ceiling_layout": "With the layout",
    "ceiling_chosen": "Chosen for it",
    "ceiling_status": "Estimated",
}
_ACRONYMS = {
    "mfu",
    "hfu",
    "dp",
    "tp",
    "pp",
    "cp",
    "ep",
    "vpp",
    "mbs",
    "gas",
    "gbs",
    "zero",
    "nccl",
    "cuda",
    "id",
    "gpu",
}
_SUFFIXES = ("_bytes", "_tflops", "_s")


def column_label(name: str) -> str:
    """Display name of a column, without its unit.

    >>> column_label("mfu"), column_label("step_time_s"), column_label("runner_up_mfu")
    ('MFU', 'Step time', 'Runner up MFU')
    """
    if name in _LABELS:
        return _LABELS[name]
    bare = next((name.removesuffix(suffix) for suffix in _SUFFIXES if name.endswith(suffix)), name)
    words = [word.upper() if word in _ACRONYMS else word for word in bare.split("_")]
    text = " ".join(words)
    return text[:1].upper() + text[1:]


@dataclass(frozen=True)
class Shown:
    """How a unit is shown: factor from the base unit, decimals, and the unit's name in a heading ("" = none)."""

    factor: float
    decimals: int
    unit: str


_BY_UNIT = {
    "fraction": Shown(100, 1, "%"),
    "bytes": Shown(1 / GIB, 1, "GiB"),
    "s": Shown(1, 3, "s"),
    "tokens/s": Shown(1, 0, ""),
    "tokens/s/GPU": Shown(1, 0, ""),
    "TFLOP/s/GPU": Shown(1, 0, ""),
    "TFLOP/s": Shown(1, 0, "TFLOP/s"),
    "GPU·h": Shown(1, 1, "GPU·h"),
    "bytes/s": Shown(1e-9, 1, "GB/s"),
    "tokens": Shown(1, 0, "tokens"),
    "sequences": Shown(1, 0, ""),
    "steps": Shown(1, 0, ""),
    "count": Shown(1, 0, ""),
    "id": Shown(1, 0, ""),
}


# Of columns that only queries of pages have.
_QUERY_UNITS = {
    "measured_mfu": "fraction",
    "likely_mfu": "fraction",
    "ceiling_mfu": "fraction",
    "gain": "fraction",
    "need_bytes": "bytes",
    "rows": "count",
    **dict.fromkeys(
        ("hit_rate", "selects", "winner_rate", "regret", "typical_regret", "other_regret"),
        "fraction",
    ),
    "chance": "fraction",
    "gain_per_gpu_hour": "fraction",
    "test_gpu_hours": "GPU·h",
    "believed_step_time_s": "s",
    "believed_lo_s": "s",
    "believed_hi_s": "s",
    "time_error": "fraction",
    "mem_error": "fraction",
    "unseen_median_error": "fraction",
    "unseen_mean_error": "fraction",
    "interval_coverage": "fraction",
}
_RATIO = Shown(1, 2, "")
_MIB = ("mib", "difference_mib", "against_mib")
_RATIOS = ("est_penalty", "time_ratio", "time_ratio_p10", "time_ratio_p90", "mem_ratio")


def shown(name: str) -> Shown | None:
    """How a numeric column is shown, or None for text, flags, times and units shown as they are."""
    if name in _RATIOS:
        return _RATIO
    if name in _MIB:
        return Shown(1, 1, "")
    column: Column | None = COLUMNS.get(name)
    unit = column.unit if column else _QUERY_UNITS.get(name)
    return _BY_UNIT.get(unit) if unit else None


def heading(name: str) -> str:
    """Column heading with the unit it is shown in.

    >>> heading("mem_peak_allocated_bytes"), heading("layout")
    ('Peak allocated, GiB', 'Layout')
    """
    how = shown(name)
    return f"{column_label(name)}, {how.unit}" if how and how.unit else column_label(name)


def display_frame(frame: pl.DataFrame, columns: Sequence[str] | None = None) -> pl.DataFrame:
    """`frame` in shown units under shown headings, for a table on a page. NULL stays NULL."""
    chosen = list(columns) if columns is not None else frame.columns
    out = []
    for name in chosen:
        how = shown(name) if frame.schema[name].is_numeric() else None
        value = pl.col(name) if how is None or how.factor == 1 else pl.col(name) * how.factor
        out.append(value.alias(heading(name)))
    return frame.select(out)


def number(value: float | None, decimals: int = 0) -> str:
    """Thousands separated by commas, with a real minus.

    >>> number(6028.4), number(-2.04, 1), number(None)
    ('6,028', '−2.0', '–')
    """
    if value is None:
        return MISSING
    text = f"{value:,.{decimals}f}"
    return text.replace("-", MINUS) if float(text.replace(",", "")) != 0 else text.lstrip("-")


def percent(fraction: float | None, decimals: int = 1) -> str:
    """A fraction in percent.

    >>> percent(0.363).replace(NBSP, " ")
    '36.3 %'
    """
    return MISSING if fraction is None else f"{number(fraction * 100, decimals)}{NBSP}%"


def points(difference: float | None) -> str:
    """A difference of two fractions in percentage points, always signed unless zero.

    >>> points(-0.0204), points(0.147), points(0.0)
    ('−2.0', '+14.7', '0.0')
    """
    if difference is None:
        return MISSING
    text = number(difference * 100, 1)
    return f"+{text}" if difference > 0 and text != "0.0" else text


def gib(size_bytes: float | None, decimals: int = 1) -> str:
    """Bytes in GiB.

    >>> gib(2**30).replace(NBSP, " "), gib(2**34, 0).replace(NBSP, " ")
    ('1.0 GiB', '16 GiB')
    """
    return MISSING if size_bytes is None else f"{number(size_bytes / GIB, decimals)}{NBSP}GiB"


def memory(size_bytes: float | None) -> str:
    """Bytes in GiB, or in MiB where GiB would read as nearly nothing, with a real minus.

    >>> [memory(size).replace(NBSP, " ") for size in (2**37, -(2**29), 26_000_000, 0)]
    ['128.0 GiB', '−0.5 GiB', '24.8 MiB', '0 GiB']
    """
    if not size_bytes:
        return gib(size_bytes, 0)
    return gib(size_bytes) if abs(size_bytes) >= GIB / 10 else f"{number(size_bytes / 2**20, 1)}{NBSP}MiB"


def significant(value: float | None, digits: int = 3) -> str:
    """Three significant digits without exponent.

    >>> significant(1.3579), significant(58.61), significant(1234.5)
    ('1.36', '58.6', '1,234')
    """
    if value is None:
        return MISSING
    if value == 0:
        return "0"
    whole = len(str(int(abs(value)))) if abs(value) >= 1 else 0
    small = (
        0 if whole else len(f"{abs(value):.12f}".split(".")[1]) - len(f"{abs(value):.12f}".split(".")[1].lstrip("0"))
    )
    return number(value, max(digits - whole + small, 0))


def seconds(value: float | None) -> str:
    """Seconds with three significant digits.

    >>> seconds(1.3579).replace(NBSP, " ")
    '1.36 s'
    """
    return MISSING if value is None else f"{significant(value)}{NBSP}s"


def ratio(value: float | None) -> str:
    """A ratio.

    >>> ratio(3.81).replace(NBSP, " ")
    '3.8 ×'
    """
    return MISSING if value is None else f"{number(value, 1)}{NBSP}×"


def token_count(tokens: int | None) -> str:
    """A batch in tokens; powers of two are named as practitioners do (1M = 1,048,576).

    >>> token_count(1048576), token_count(4194304), token_count(16384), token_count(5000000)
    ('1M', '4M', '16k', '5,000,000')
    """
    if tokens is None:
        return "unknown"
    for size, unit in ((2**20, "M"), (2**10, "k")):
        if tokens >= size and tokens % size == 0:
            return f"{tokens // size:,}{unit}"
    return number(tokens)


def moment(value: datetime | None) -> str:
    """A time to the minute.

    >>> moment(datetime(2026, 11, 20, 22, 41))
    '20 Nov 2026 22:41'
    """
    return MISSING if value is None else f"{value.day} {value:%b %Y %H:%M}"


def count(amount: int, singular: str, plural: str | None = None) -> str:
    """A number with its noun.

    >>> count(1, "run"), count(3280, "run"), count(2, "try", "tries")
    ('1 run', '3,280 runs', '2 tries')
    """
    return f"{number(amount)} {singular if amount == 1 else plural or singular + 's'}"


def value_text(name: str, value: object) -> str:
    """One value of a column as text with its unit, e.g. for a fact list."""
    if value is None:
        return MISSING
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, datetime):
        return moment(value)
    how = shown(name)
    if how is None or not isinstance(value, (int, float)):
        return str(value)
    text = significant(value) if how.unit == "s" else number(value * how.factor, how.decimals)
    return f"{text}{NBSP}{how.unit}" if how.unit else text


def in_sentence(label: str) -> str:
    """A label inside a sentence: abbreviations keep their capitals.

    >>> in_sentence("MFU"), in_sentence("Tokens/s/GPU")
    ('MFU', 'tokens/s/GPU')
    """
    return label if label[:2].isupper() else label[:1].lower() + label[1:]


def plain(text: str) -> str:
    """`text` for plotly, which reads tags.

    >>> plain("a<b>")
    'a&lt;b&gt;'
    """
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
