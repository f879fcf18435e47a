"""Settings that follow from several printed values, and where their source comes from."""

from __future__ import annotations

import polars as pl

from sweepscope.pipeline.logs.dialect import CombinedSetting
from sweepscope.pipeline.logs.expressions import has_value, is_true, whole
from sweepscope.pipeline.logs.runs.settings import conclude, with_combined

RULE = CombinedSetting("dp", whole("arg:dp") * whole("arg:ep").fill_null(1), ("arg:dp",))


def settings(*rows: tuple[str, str, str, str, int]) -> pl.DataFrame:
    """Rows of (run_id, name, value, setting_source, line_no)."""
    names = ["run_id", "name", "value", "setting_source", "line_no"]
    return pl.DataFrame(list(rows), schema=names, orient="row").with_columns(source_path=pl.lit("a.log"))


def test_value_and_source_of_the_telling_input() -> None:
    stated = settings(("r1", "arg:ep", "2", "log_line", 3), ("r1", "arg:dp", "4", "argument_dump", 7))
    assert conclude(stated, [RULE]).to_dicts() == [
        {
            "run_id": "r1",
            "name": "dp",
            "value": "8",
            "setting_source": "argument_dump",
            "source_path": "a.log",
            "line_no": 7,
        }
    ]


def test_inputs_nobody_printed_are_null() -> None:
    assert conclude(settings(("r1", "arg:dp", "4", "argument_dump", 7)), [RULE])["value"].to_list() == ["4"]
    assert conclude(settings(("r1", "arg:ep", "4", "argument_dump", 7)), [RULE]).is_empty()
    assert conclude(settings(("r1", "other", "4", "argument_dump", 7)), [RULE]).is_empty()


def test_the_latest_value_of_the_nearest_source_counts() -> None:
    stated = settings(
        ("r1", "arg:dp", "1", "command_line", 1),
        ("r1", "arg:dp", "2", "argument_dump", 2),
        ("r1", "arg:dp", "4", "argument_dump", 9),
    )
    assert conclude(stated, [RULE])["value"].to_list() == ["4"]


def test_none_is_a_word_and_absence_is_not() -> None:
    rules = [
        CombinedSetting("said", has_value("arg:x")),
        CombinedSetting("on", is_true("arg:x")),
        CombinedSetting("whole", whole("arg:x")),
    ]
    found = conclude(settings(("r1", "arg:x", "None", "argument_dump", 1)), rules)
    assert dict(found.select("name", "value").iter_rows()) == {"said": "false", "on": "false"}


def test_a_documented_default_is_marked_as_assumed() -> None:
    rule = CombinedSetting(
        "precision", pl.when(pl.col("arg:x").is_not_null()).then(pl.lit("bf16")), setting_source="assumed"
    )
    found = conclude(settings(("r1", "arg:x", "1", "log_line", 1)), [rule])
    assert found["setting_source"].to_list() == ["assumed"]


def test_only_runs_of_the_dialect_are_concluded() -> None:
    stated = settings(("r1", "arg:dp", "4", "argument_dump", 1), ("r2", "arg:dp", "8", "argument_dump", 1))
    dialects = pl.DataFrame({"run_id": ["r1", "r2"], "dialect": ["one", "two"]})
    found = with_combined(stated, dialects, {"one": [RULE], "two": []})
    assert found.filter(name="dp")["run_id"].to_list() == ["r1"]
    assert found.height == 3
