"""picotron's step line, its configuration and its status word."""

from __future__ import annotations

import json
from pathlib import Path

import polars as pl
import pytest

from sweepscope.pipeline.logs.dialects import picotron
from tests.pipeline.logs.logs import facts_of, settings_of, step_of, tables_of

NEW = (
    "[rank 2] Step: 7     | Loss: 10.9062 | Global batch size:   2.05K | Tokens/s:  199.02 | Tokens/s/GPU:   24.88 | "
    "Tokens:  14.34K | MFU:  0.25% | Memory usage:   1.75GB"
)
OLD = (
    "[rank 0] Step: 3, Loss: 8.1250, Global batch size (with seq_len): 2.05K, Tokens/s: 1.10K, Tokens/s/GPU: 275.50, "
    "Tokens: 6.14K, MFU: 1.50%, Memory usage: 12.30GB"
)


def test_new_line() -> None:
    row = step_of("picotron", NEW)
    assert {name: row[name] for name in ("rank", "step", "loss", "tokens_per_s", "tokens_per_s_per_gpu")} == {
        "rank": 2,
        "step": 7,
        "loss": 10.9062,
        "tokens_per_s": 199.02,
        "tokens_per_s_per_gpu": 24.88,
    }
    assert (row["consumed_tokens"], row["mfu_logged"], row["mem_reserved_bytes"]) == (14340, 0.0025, 1_750_000_000)
    assert row["step_time_s"] is None


def test_old_line_separates_with_commas() -> None:
    row = step_of("picotron", OLD)
    assert (row["step"], row["loss"], row["tokens_per_s"], row["tokens_per_s_per_gpu"]) == (3, 8.125, 1100.0, 275.5)
    assert (row["consumed_tokens"], row["mem_reserved_bytes"]) == (6140, 12_300_000_000)


def test_the_token_limit_behind_the_tokens_is_not_read() -> None:
    row = step_of("picotron", NEW.replace("14.34K |", "14.34K/1.00M |"))
    assert row["consumed_tokens"] == 14340


def test_a_loss_that_is_not_a_number_is_a_value() -> None:
    assert step_of("picotron", NEW.replace("10.9062", "nan"))["loss"] != step_of("picotron", NEW)["loss"]
    assert step_of("picotron", NEW.replace("10.9062", "nan"))["step"] == 7


@pytest.mark.parametrize(
    "end", ["Step: 7", "Loss: 10.9", "Global batch size:", "Tokens/s:  199.02", "Tokens/s/GPU:   24.8"]
)
def test_a_line_cut_before_its_throughput_ends_is_unparsed(end: str) -> None:
    text = NEW[: NEW.index(end) + len(end)]
    row = step_of("picotron", text)
    assert row["step"] is None
    assert row["text"] == text


def test_a_line_cut_behind_its_throughput_keeps_what_is_whole() -> None:
    row = step_of("picotron", NEW[: NEW.index("MFU:") + len("MFU:  0.2")])
    assert (row["step"], row["consumed_tokens"], row["mfu_logged"], row["mem_reserved_bytes"]) == (7, 14340, None, None)


@pytest.mark.parametrize("value", ["inf", "nan", "9" * 30, "1e400"])
def test_impossible_quantities_are_unknown_not_errors(value: str) -> None:
    row = step_of("picotron", NEW.replace("14.34K", value))
    assert row["step"] == 7
    assert row["consumed_tokens"] is None


class TestSettings:
    def test_parameters(self) -> None:
        assert settings_of("picotron", "Number of parameters: 1.24B")["params"] == "1240000000"


def gpus_of(*lines: str) -> list[tuple[int, str]]:
    said = picotron.finalize(facts_of("picotron", "\n".join(lines))).settings
    return said.filter(pl.col("name") == "num_gpus").select("line_no", "value").rows()


class TestRanks:
    def test_from_both_throughputs(self) -> None:
        assert gpus_of(NEW) == [(1, "8")]

    @pytest.mark.parametrize(
        ("throughput", "per_gpu"),
        [("1.53M", "2.99K"), ("0.00", "0.00"), ("1.00K", "0.00"), ("nan", "1.00"), ("255.00K", "1.00K")],
    )
    def test_figures_too_coarse_prove_nothing(self, throughput: str, per_gpu: str) -> None:
        assert gpus_of(NEW.replace("199.02", throughput).replace("24.88", per_gpu)) == []

    @pytest.mark.parametrize(("throughput", "per_gpu"), [("32.12K", "1.00K"), ("1.00M", "31.26K"), ("32.12M", "1.00M")])
    def test_a_round_figure_is_rounded_like_any_other(self, throughput: str, per_gpu: str) -> None:
        assert gpus_of(NEW.replace("199.02", throughput).replace("24.88", per_gpu)) == [(1, "32")]

    def test_noted_once_and_again_where_steps_begin_anew(self) -> None:
        steps = [*range(1, 31), *range(5, 9)]
        assert gpus_of(*(NEW.replace("Step: 7 ", f"Step: {step:<2d}") for step in steps)) == [(1, "8"), (31, "8")]

    def test_noted_where_it_changes(self) -> None:
        half = NEW.replace("Step: 7 ", "Step: 8 ").replace("199.02", "99.52")
        assert gpus_of(NEW, half) == [(1, "8"), (2, "4")]


class TestConfig:
    def test_sections_and_the_implied_zero_stage(self) -> None:
        config = {
            "distributed": {"tp_size": 2, "dp_size": 4, "use_cpu": True},
            "model": {"hidden_size": 64},
            "training": {"seq_length": 128},
        }
        assert picotron.read_config(json.dumps(config)) == {
            "tp": "2",
            "dp": "4",
            "hidden_size": "64",
            "seq_len": "128",
            "accelerator": "CPU",
            "zero_stage": "0",
        }

    def test_a_missing_section_or_value_is_unknown(self) -> None:
        found = picotron.read_config('{"distributed": {"tp_size": null}, "model": 3, "training": {}}')
        assert found == {"zero_stage": "0"}

    @pytest.mark.parametrize(
        "text", ["", "[]", "{}", "3", '{"distributed": {}}', '{"distributed": [], "training": {}}']
    )
    def test_other_json_is_refused(self, text: str) -> None:
        with pytest.raises(ValueError, match=r".+"):
            picotron.read_config(text)


class TestStatus:
    def test_one_word_in_any_case_and_with_or_without_its_line_feed(self) -> None:
        assert picotron.read_status("Completed\n") == picotron.read_status("completed") == {"status_file": "completed"}

    @pytest.mark.parametrize("text", ["", "done", "completed fail", "x" * 10_000])
    def test_other_words_are_refused(self, text: str) -> None:
        with pytest.raises(ValueError, match="not a picotron status") as caught:
            picotron.read_status(text)
        assert len(str(caught.value)) < 100


def test_the_old_line_with_commas_is_known_by_itself(tmp_path: Path) -> None:
    line = (
        "[rank 0] Step: {}, Loss: 10.9062, Global batch size (with seq_len): 2.05K, Tokens/s: 199.02, Tokens/s/GPU: 24.88, "
        "Tokens: 2.05K, MFU: 0.01%, Memory usage: 1.75GB\n"
    )
    runs = tables_of(tmp_path, line.format(1) + line.format(2))["runs"]
    assert runs.select("framework", "last_step", "num_gpus").rows() == [("picotron", 2, 8)]
