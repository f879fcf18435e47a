"""Which value of a setting counts, and when sources disagree."""

from __future__ import annotations

from itertools import pairwise

import polars as pl
import pytest

from sweepscope.pipeline.logs.runs import setting_precedence
from sweepscope.schemas.registry import TABLES
from sweepscope.schemas.vocab import SETTING_SOURCE

RUNS = TABLES["runs"].columns


def stated(*rows: tuple[str, str | None, str] | tuple[str, str | None, str, int]) -> pl.DataFrame:
    """Settings of run r: name, value, source and, if given, line."""
    return pl.DataFrame(
        [("r", row[0], row[1], row[2], "a.log", row[3] if len(row) > 3 else None) for row in rows],
        schema={
            "run_id": pl.String(),
            "name": pl.String(),
            "value": pl.String(),
            "setting_source": pl.String(),
            "source_path": pl.String(),
            "line_no": pl.Int64(),
        },
        orient="row",
    )


def used(frame: pl.DataFrame) -> dict[str, str]:
    return dict(setting_precedence.choose(frame).filter("is_used").select("name", "value").iter_rows())


def texts(frame: pl.DataFrame) -> list[str]:
    return setting_precedence.conflicts(setting_precedence.choose(frame))["text"].to_list()


def test_nothing_stated_nothing_chosen() -> None:
    chosen = setting_precedence.choose(stated())
    assert chosen.is_empty()
    assert setting_precedence.conflicts(chosen).is_empty()
    assert setting_precedence.widen(chosen, RUNS).is_empty()
    assert setting_precedence.unreadable(chosen, RUNS).is_empty()


def test_the_order_of_sources_is_known_and_complete() -> None:
    # What a scheduler says is joined when the store is published, after the choice (pipeline.scheduler.reconcile).
    assert {*setting_precedence.PRECEDENCE, *setting_precedence.NOT_EVIDENCE, "scheduler"} == set(SETTING_SOURCE)


@pytest.mark.parametrize(("nearer", "farther"), list(pairwise(setting_precedence.PRECEDENCE)))
def test_a_nearer_source_wins_whatever_the_order(nearer: str, farther: str) -> None:
    rows = [("tp", "1", farther), ("tp", "2", nearer)]
    assert used(stated(*rows)) == used(stated(*rows[::-1])) == {"tp": "2"}


def test_the_latest_of_a_source_wins() -> None:
    assert used(stated(("tp", "4", "argument_dump", 90), ("tp", "1", "argument_dump", 10))) == {"tp": "4"}


def test_a_source_that_takes_its_word_back_says_nothing() -> None:
    assert used(stated(("vpp", "2", "config_file"), ("vpp", "None", "argument_dump", 10))) == {"vpp": "2"}
    assert used(stated(("vpp", None, "config_file"))) == {}


def test_runs_do_not_mix() -> None:
    both = pl.concat(
        [stated(("tp", "1", "config_file")), stated(("tp", "2", "log_line")).with_columns(run_id=pl.lit("s"))]
    )
    assert setting_precedence.choose(both).select("run_id", "value", "is_used").sort("run_id").rows() == [
        ("r", "1", True),
        ("s", "2", True),
    ]


def test_a_contradiction_names_both_sources() -> None:
    assert texts(stated(("dp", "8", "folder_name"), ("dp", "4", "config_file"))) == [
        "dp: folder_name says 8, config_file says 4; the latter counts"
    ]


@pytest.mark.parametrize(
    ("left", "right"), [("8", "8.0"), ("True", "true"), ("1e6", "1000000"), ("BF16", "bf16"), ("True", "1")]
)
def test_other_spellings_of_a_value_are_no_contradiction(left: str, right: str) -> None:
    assert texts(stated(("x", left, "folder_name"), ("x", right, "config_file"))) == []


def test_assumptions_contradict_nothing() -> None:
    assert texts(stated(("dp", "8", "assumed"), ("dp", "4", "config_file"))) == []


def test_values_become_columns_of_their_type() -> None:
    frame = stated(
        ("tp", "8.0", "config_file"),
        ("params", "1e9", "config_file"),
        ("sequence_parallel", "Yes", "config_file"),
        ("mfu_logged", "0.5", "config_file"),
        ("model", "m", "config_file"),
        ("arg:secret", "1", "config_file"),
    )
    assert setting_precedence.widen(setting_precedence.choose(frame), RUNS).to_dicts() == [
        {"run_id": "r", "tp": 8, "params": 10**9, "sequence_parallel": True, "mfu_logged": 0.5, "model": "m"}
    ]


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("tp", "many"),
        ("tp", "1.5"),
        ("tp", "inf"),
        ("tp", "1e300"),
        ("tp", "0"),
        ("mbs", "-1"),
        ("step_time_s", "0"),
        ("sequence_parallel", "maybe"),
        ("mfu_logged", "x"),
    ],
)
def test_a_value_that_its_column_cannot_hold_is_named_and_null(name: str, value: str) -> None:
    chosen = setting_precedence.choose(stated((name, value, "config_file")))
    assert setting_precedence.widen(chosen, RUNS)[name].to_list() == [None]
    assert setting_precedence.unreadable(chosen, RUNS).select("name", "value").rows() == [(name, value)]


def test_one_card_model_or_precision_in_two_spellings_is_no_conflict() -> None:
    alike = stated(
        ("accelerator", "NVIDIA H100 80GB HBM3", "log_line"),
        ("accelerator", "H100-SXM-80GB", "config_file"),
        ("model", "Qwen/Qwen2.5-7B", "argument_dump"),
        ("model", "qwen2.5-7b", "folder_name"),
        ("precision", "bfloat16", "log_line"),
        ("precision", "bf16", "config_file"),
    )
    assert texts(alike) == []
    different = stated(
        ("accelerator", "NVIDIA H100 80GB HBM3", "log_line"),
        ("accelerator", "NVIDIA A100-SXM4-80GB", "config_file"),
        ("precision", "odd", "log_line"),
        ("precision", "strange", "config_file"),
    )
    assert len(texts(different)) == 2
