"""Runs that a table of results lists although their logs were read: one run each, of which the log's row counts. Pure.

A row belongs to a log if it names its file or folder; else if no setting that both have differs, and no other row and
log of the same settings have rates that are closer to each other.
"""

from __future__ import annotations

import polars as pl

from sweepscope.pipeline.logs.runs.same_runs import LAYOUT, SAME, near_each_other
from sweepscope.schemas.tables.runs import SETTINGS

VERSION = 2
"""Raise it when other runs of the same rows would be found: stores are then published anew."""

_SETTINGS = (*LAYOUT, "vpp", "recompute", "num_nodes", "precision", "accelerator", "model", "params", "cluster")
"""Columns of `runs` that are settings of a row."""
_RATES = ("step_time_s", "tokens_per_s_per_gpu", "mfu_logged", "tflops_per_gpu_logged")
_LEVELS = 3
"""Levels from the folder of a table upwards below which its logs lie."""
_EQUAL = (*LAYOUT, "vpp", "recompute", "model")
_LEAST_COMMON = 4
_MOST_RATIO = 1.3
"""Between a table's rate and a log's: one may be a mean with the start-up in it."""
_MOST_PAIRS = 4_000_000
"""Of the rows of a table and the logs near it; larger tables are left alone."""


def settings_of(rows: pl.DataFrame) -> pl.DataFrame:
    """SETTINGS rows of what the rows of a table state of their runs."""
    known = [name for name in _SETTINGS if name in rows.columns]
    texts = rows.select("run_id", "source_path", "line_no", *(pl.col(name).cast(pl.String) for name in known))
    long = texts.unpivot(known, index=["run_id", "source_path", "line_no"], variable_name="name").drop_nulls("value")
    return SETTINGS.conform(long.with_columns(setting_source=pl.lit("result_table"), is_used=pl.lit(value=True)))


def listed_runs(listed: pl.DataFrame, logs: pl.DataFrame, names: pl.DataFrame) -> pl.DataFrame:
    """SAME rows of the runs of tables that logs have, too.

    Args:
        listed: rows of `runs` of tables.
        logs: the same of logs.
        names: `run_id`, `value`: texts in the rows of tables.
    """
    near = _near(listed, logs)
    if near.is_empty():
        return pl.DataFrame(schema=SAME)
    by_name = pl.concat([_alone(listed, logs), _by_name(near, logs, names)]).unique("run_id", keep="first")
    by_name = by_name.filter(pl.len().over("duplicate_of") == 1)
    rest = near.join(by_name, on="run_id", how="anti").join(
        by_name, left_on="log_id", right_on="duplicate_of", how="anti"
    )
    return pl.concat([by_name, _by_settings(rest, listed, logs)]).sort("run_id")


def _near(listed: pl.DataFrame, logs: pl.DataFrame) -> pl.DataFrame:
    """`run_id`, `log_id`, `level`: each row of a table with the runs below its folder, or below one of those above."""
    tables = listed.select("run_dir", run_id="source_path").unique()
    pairs = near_each_other(tables, logs.select("run_id", "run_dir"), levels=range(_LEVELS))
    rows = listed.group_by(source_path="source_path").agg("run_id")
    found = pairs.select("log_id", "level", source_path="run_id").join(rows, on="source_path")
    is_few = (pl.col("run_id").list.len().sum() <= _MOST_PAIRS).over("source_path")
    return found.filter(is_few).explode("run_id").select("run_id", "log_id", "level")


def _alone(listed: pl.DataFrame, logs: pl.DataFrame) -> pl.DataFrame:
    """SAME rows of tables with one row beside the log of one run, where no setting that both have differs."""
    rows, runs = (
        one.filter(pl.len().over("run_dir") == 1).select("run_id", "run_dir", *_EQUAL) for one in (listed, logs)
    )
    both = rows.join(runs, on="run_dir", suffix="_log")
    equal = [(pl.col(name) == pl.col(f"{name}_log")).fill_null(value=True) for name in _EQUAL]
    return both.filter(pl.all_horizontal(equal)).select("run_id", duplicate_of="run_id_log")


def _by_name(near: pl.DataFrame, logs: pl.DataFrame, names: pl.DataFrame) -> pl.DataFrame:
    """SAME rows of rows that name one log, in the longest text that names any: its path, file or folder."""
    path, folder = pl.col("source_path"), pl.col("run_dir")
    whole = logs.select("run_id", "attempt", "source_path", "run_dir", plain=path.str.replace(r"\.[^./]+$", ""))
    # Several runs of one file are kept as folders with a number and their name: `exported.csv/1-tp2`.
    numbered = folder.str.extract(r"/\d+-([^/]+)$")
    ends = (*_ends(path), *_ends(pl.col("plain")), *_ends(folder), numbered)
    keys = pl.concat(whole.select("attempt", "source_path", log_id="run_id", value=end) for end in ends)
    keys = keys.drop_nulls("value").unique(["log_id", "value"])
    words = names.filter(pl.col("value").str.contains("[A-Za-z]"))  # a number names its job no surer than its degree
    found = words.join(keys, on="value").join(near, on=["run_id", "log_id"], how="semi")
    length = pl.col("value").str.len_chars()
    found = found.filter(pl.col("source_path").n_unique().over("run_id", "value") == 1)
    longest = found.filter(length == length.max().over("run_id"))
    last = longest.sort("attempt").unique("run_id", keep="last", maintain_order=True)
    return last.filter(pl.len().over("log_id") == 1).select("run_id", duplicate_of="log_id")


def _ends(path: pl.Expr) -> list[pl.Expr]:
    """The last part of a path, the last two, and so on: what somebody writes of it."""
    return [path.str.extract(rf"((?:[^/]+/){{{count}}}[^/]+)$") for count in range(_LEVELS)]


def _by_settings(near: pl.DataFrame, listed: pl.DataFrame, logs: pl.DataFrame) -> pl.DataFrame:
    """SAME rows of rows and logs of one sweep, or below the table, with the same settings; the closest rates win."""
    facts = (*_EQUAL, "accelerator", "sweep", "status", *_RATES)
    both = near.join(listed.select("run_id", *facts), on="run_id").join(
        logs.select("run_id", *facts), left_on="log_id", right_on="run_id", suffix="_log"
    )
    equal = [pl.col(name) == pl.col(f"{name}_log") for name in _EQUAL]
    card, card_log = pl.col("accelerator"), pl.col("accelerator_log")
    is_card = card.str.starts_with(card_log) | card_log.str.starts_with(card)  # H100, H100-SXM-80GB
    distances = [(pl.col(name) / pl.col(f"{name}_log")).log().abs() for name in _RATES]
    is_done, is_done_log = (pl.col(f"status{end}") == "completed" for end in ("", "_log"))
    alike = both.with_columns(
        common=pl.sum_horizontal(each.fill_null(value=False) for each in equal),
        distance=pl.max_horizontal(*distances).fill_nan(None),
    ).filter(
        pl.all_horizontal(each.fill_null(value=True) for each in (*equal, is_card))
        & ((pl.col("level") == 0) | (pl.col("sweep") == pl.col("sweep_log")))
        & (pl.col("common") >= _LEAST_COMMON)
        & (pl.col("distance").exp() <= _MOST_RATIO).fill_null(~is_done & ~is_done_log)
    )
    ranked = alike.sort("distance", "run_id", "log_id", nulls_last=True)
    nearest = ranked.unique("run_id", keep="first", maintain_order=True)
    return nearest.unique("log_id", keep="first", maintain_order=True).select("run_id", duplicate_of="log_id")
