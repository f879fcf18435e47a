"""Captures cut out of lines by their template are what pattern by pattern finds."""

from __future__ import annotations

import polars as pl
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from sweepscope.pipeline.logs.dialects import gpt_neox, litgpt, maxtext, nanotron, picotron
from sweepscope.pipeline.logs.dialects.deepspeed import dialect as deepspeed
from sweepscope.pipeline.logs.dialects.huggingface import dicts
from sweepscope.pipeline.logs.dialects.megatron import dialect
from sweepscope.pipeline.logs.dialects.mlperf import dialect as mlperf
from sweepscope.pipeline.logs.dialects.nanogpt import dialect as nanogpt
from sweepscope.pipeline.logs.dialects.nemo import dialect as nemo
from sweepscope.pipeline.logs.dialects.torchtitan import dialect as torchtitan
from sweepscope.pipeline.logs.dialects.verl import dialect as verl
from sweepscope.pipeline.text import field_extraction
from sweepscope.pipeline.text.arrow_buffers import buffers_of
from sweepscope.pipeline.text.digit_free import is_blind
from sweepscope.pipeline.text.field_extraction import extract_each
from sweepscope.pipeline.text.line_templates import template_hashes
from sweepscope.pipeline.text.timestamps import STAMPS
from tests.properties import draws

# A line of each format, and the patterns that its dialect runs.
FORMATS = {
    "megatron": (
        dialect._NUMBERS | {"past_loss": dialect._PAST_LOSS},
        " [2025-02-03 04:05:06] iteration       12/     100 | consumed samples:          96 | elapsed time per iteration"
        " (ms): 2400.1 | throughput per GPU (TFLOP/s/GPU): 210.2 | learning rate: 1.000000E-05 | global batch size:     8"
        " | lm loss: 9.100000E+00 | loss scale: 1.0 | grad norm: 1.250 | number of skipped iterations:   0 |",
    ),
    "gpt-neox": (
        gpt_neox._NUMBERS | gpt_neox._OTHERS,
        " samples/sec: 12.345 | iteration       20/  320000 | elapsed time per iteration (ms): 825.7 | learning rate:"
        " 6.000E-04 | approx flops per GPU: 55.1TFLOPS | lm_loss: 1.054321E+01 | loss scale: 65536.0 | number of skipped"
        " iterations:   0 | number of nan iterations:   0 |",
    ),
    "nanotron": (
        nanotron._NUMBERS | nanotron._COUNTERS,
        "10/17/2025 16:31:56 [INFO|DP=0|PP=0|TP=1]: iteration: 7 / 100 | consumed_tokens: 1.02M |"
        " elapsed_time_per_iteration_ms: 1.25K | tokens_per_sec: 419K | tokens_per_sec_per_gpu: 13.1K |"
        " global_batch_size: 128 | lm_loss: 11.4 | lr: 3e-05 | model_tflops_per_gpu: 120 | grad_norm: 2.5",
    ),
    "picotron": (
        picotron._FIELDS,
        "[rank 3] Step: 12    | Loss: 4.1250 | Global batch size:  16.38K | Tokens/s:  13.80K | Tokens/s/GPU:   1.72K |"
        " Tokens: 196.61K/1.00M | MFU:  0.94% | Memory usage:  12.50GB",
    ),
    "torchtitan": (
        torchtitan._NUMBERS | torchtitan._OTHERS,
        "[titan] 2025-06-01 10:00:00,123 - root - INFO - step: 20  loss:  7.1250  grad_norm:  1.5000  memory: 40.25GiB"
        "(50.80%)  tps: 7,123  tflops: 412.50  mfu: 41.71%",
    ),
    "maxtext": (
        maxtext._NUMBERS | {"number": maxtext._STEP},
        "completed step: 12, seconds: 4.321, TFLOP/s/device: 190.125, Tokens/s/device: 3791.250, total_weights: 65536,"
        " loss: 9.125",
    ),
    "nanogpt": (
        nanogpt._FIELDS,
        "step:7/1705 train_loss:6.1250 train_time:1234ms step_avg:176.29ms",
    ),
    "huggingface": (
        dicts._NUMBERS | {"complete": dicts._COMPLETE},
        "{'loss': 1.2345, 'grad_norm': 0.512, 'learning_rate': 1.9e-05, 'epoch': 0.12}",
    ),
    "deepspeed": (
        deepspeed._STEPS | deepspeed._NUMBERS | deepspeed._OTHERS | STAMPS,
        "[2024-01-02 03:04:05,678] [INFO] [logging.py:96:log_dist] [Rank 0] step=10, skipped=0, lr=[1e-05, 1e-05],"
        " mom=[(0.9, 0.95)]",
    ),
    "nemo": (
        nemo._NUMBERS,
        "Training epoch 0, iteration 12/99 | lr: 1.5e-06 | global_batch_size: 8 | global_step: 12 | reduced_train_loss:"
        " 11.03 | train_step_timing in s: 2.5 | consumed_samples: 104",
    ),
    "verl": (
        verl._FIELDS,
        "step:7 - global_seqlen/mean:8123.5 - actor/pg_loss:0.0125 - actor/grad_norm:0.25 - perf/mfu/actor:0.31"
        " - perf/throughput:1234.5 - timing_s/step:61.25",
    ),
    "mlperf": (
        mlperf._FIELDS | STAMPS,
        ':::MLLOG {"namespace": "", "time_ms": 1700000012345, "event_type": "POINT_IN_TIME", "key": "tracked_stats",'
        ' "value": {"train_step_time": 2.125, "reduced_train_loss": 9.5}, "metadata": {"step": 12, "lr": 1e-05}}',
    ),
    "litgpt": (
        litgpt._FIELDS,
        "Epoch 1 | iter 4 step 1 | loss train: 2.512, val: n/a | iter time: 820.31 ms (step) remaining time: 0:12:34",
    ),
}


def one_by_one(lines: pl.DataFrame, patterns: dict[str, str]) -> pl.DataFrame:
    return lines.with_columns(pl.col("text").str.extract(pattern).alias(name) for name, pattern in patterns.items())


# Beside plain text: letters, digits, blanks and cases that Python and Rust may judge otherwise, bars, and long words.
INSERTED = (
    "0",
    "17",
    " ",
    "  ",
    "nan",
    "|",
    "x",
    "\t",
    "\x1c",
    "\x85",
    "é",
    "█▏",
    "…",
    "٣",
    "ſ",
    "K",
    "\u00a0",
    "e\u0301",
    "٠" * 20,
)


def hashed(lines: pl.DataFrame) -> pl.DataFrame:
    """The lines with their templates."""
    return lines.with_columns(template=template_hashes(*buffers_of(lines["text"])))


def damaged(line: str) -> st.SearchStrategy[str]:
    """The line with other digits, cut short, or with something in it."""
    digits = st.lists(st.sampled_from("0123456789"), min_size=len(line), max_size=len(line))
    other = digits.map(lambda new: "".join(n if c.isdigit() else c for c, n in zip(line, new, strict=True)))
    cut = st.tuples(other, st.integers(0, len(line))).map(lambda pair: pair[0][: pair[1]])
    signed = st.tuples(other, st.sampled_from("+-")).map(lambda pair: pair[0].replace("E-", f"E{pair[1]}"))
    longer = st.tuples(other, st.integers(0, len(line)), st.sampled_from(INSERTED))
    inserted = longer.map(lambda three: three[0][: three[1]] + three[2] + three[0][three[1] :])
    return st.one_of(other, other, cut, signed, inserted)


@pytest.mark.slow
@pytest.mark.parametrize("name", FORMATS)
@settings(max_examples=draws(30), deadline=None, suppress_health_check=list(HealthCheck))
@given(data=st.data())
def test_templates_find_what_the_patterns_find(name: str, data: st.DataObject) -> None:
    patterns, line = FORMATS[name]
    texts = [line] * 50 + data.draw(st.lists(damaged(line), min_size=1, max_size=40))
    data.draw(st.randoms(use_true_random=False)).shuffle(texts)
    lines = pl.DataFrame({"text": texts})
    with pytest.MonkeyPatch.context() as patch:
        # Few templates are searched whatever they are; of many, only those that several lines share.
        patch.setattr(field_extraction, "_FEW_LINES", 0)
        patch.setattr(field_extraction, "_FEW_TEMPLATES", data.draw(st.sampled_from([0, 256])))
        assert extract_each(lines, patterns).equals(one_by_one(lines, patterns))
        assert extract_each(hashed(lines), patterns).drop("template").equals(one_by_one(lines, patterns))


@pytest.mark.parametrize("name", FORMATS)
def test_no_pattern_of_a_format_names_a_digit(name: str) -> None:
    patterns, _ = FORMATS[name]
    assert [pattern for pattern in patterns.values() if not is_blind(pattern)] == []


PIECES = ("a", "b", " ", "1", "2", "10", ".", "é", "█", "-")
CAPTURES = (
    r"(\d+)",
    r"(\w*)",
    r"a(1?)",
    r"^(\S+)",
    r"(b)?\d",
    r"1(\d)",
    r"(2+)",
    r"(\d*)$",
    r"([^1]*)-",
    r"(?:(a)|(b))\d",
    r"\b([a-b.]+)\b",
    r"([0-9]{2,3})",
    r"((?:a|b)[0-9]*)+",
    r"(?i)(A\d+)",
    r"()b",
    r"([1-3]+)\.",
    r"(.{13,}) ",
    r"(\d+?)",
)


@settings(max_examples=draws(100), deadline=None)
@given(
    texts=st.lists(st.lists(st.sampled_from(PIECES), max_size=24).map("".join), max_size=30),
    patterns=st.lists(st.sampled_from(CAPTURES), min_size=1, max_size=6),
    few=st.sampled_from([0, 256]),
)
def test_any_pattern_finds_what_it_finds_alone(texts: list[str], patterns: list[str], few: int) -> None:
    lines = pl.DataFrame({"text": texts}, schema={"text": pl.String})
    named = {f"p{place}": pattern for place, pattern in enumerate(patterns)}
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(field_extraction, "_FEW_LINES", 0)
        patch.setattr(field_extraction, "_FEW_TEMPLATES", few)
        assert extract_each(lines, named).equals(one_by_one(lines, named))
        assert extract_each(hashed(lines), named).drop("template").equals(one_by_one(lines, named))


@pytest.fixture
def no_line_is_few(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(field_extraction, "_FEW_LINES", 0)


@pytest.mark.usefixtures("no_line_is_few")
class TestExtractEach:
    def test_a_pattern_is_searched_once_for_lines_that_differ_in_digits_only(self) -> None:
        pattern = r"only here: (\d+)"
        lines = pl.DataFrame({"text": [f"only here: {i:05d}" for i in range(10_000)]})
        found = extract_each(lines, {"a": pattern})["a"]
        assert found.to_list() == [f"{i:05d}" for i in range(10_000)]
        assert list(field_extraction._searches((pattern,)).known) == [b"only here: 00000"]

    def test_what_is_remembered_stays_bounded(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(field_extraction, "_MAX_KNOWN", 20)
        pattern = r"kept: \w+ (\d+)"
        for letter in "abcd":
            lines = pl.DataFrame({"text": [f"kept: {letter * (i + 1)} {i % 10}" for i in range(30)]})
            assert extract_each(lines, {"n": pattern})["n"].to_list() == [str(i % 10) for i in range(30)]
            assert len(field_extraction._searches((pattern,)).known) == 30

    def test_captures_of_any_length_come_out_whole(self) -> None:
        texts = [f"{'é' * (i % 2)}key: {'v' * i}; end" for i in range(40)]
        found = extract_each(pl.DataFrame({"text": texts}), {"value": r"key: (\w*);"})["value"]
        assert found.to_list() == ["v" * i for i in range(40)]

    def test_a_template_with_bars_is_cut_by_bytes(self) -> None:
        lines = pl.DataFrame({"text": [f"{i}%|████▏   | loss={i / 10:.1f}" for i in range(10, 99)]})
        patterns = {"percent": r"^(\d+)%", "bar": r"\|(\S+) ", "loss": r"loss=([\d.]+)"}
        assert extract_each(lines, patterns).equals(one_by_one(lines, patterns))
        assert "████".encode() in next(iter(field_extraction._searches(tuple(patterns.values())).known))

    def test_captures_may_overlap_and_lie_in_each_other(self) -> None:
        lines = pl.DataFrame({"text": [f"a={i} b={i * 2};" for i in range(300)]})
        patterns = {"all": r"(a=\d+ b=\d+)", "b": r"b=(\d+)", "left": r"(\d+ b)", "half": r"=(\d)", "none": r"c=(\d+)"}
        assert extract_each(lines, patterns).equals(one_by_one(lines, patterns))

    def test_an_unknown_text_has_no_captures(self) -> None:
        lines = pl.DataFrame({"text": ["x=1", None, ""]})
        assert extract_each(lines, {"any": "(x?)"})["any"].to_list() == ["x", None, ""]

    def test_columns_stand_in_the_order_of_the_patterns_and_replace_others(self) -> None:
        lines = pl.DataFrame({"b": ["old"], "text": ["1 a"]})
        found = extract_each(lines, {"digit": "(1)", "b": "(a)", "c": r"(\d)"})
        assert found.to_dicts() == [{"b": "a", "text": "1 a", "digit": "1", "c": "1"}]

    def test_lines_that_are_not_alike_are_searched_one_by_one(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(field_extraction, "_FEW_TEMPLATES", 0)
        pattern = r"odd: \w+ (\d+)"
        lines = pl.DataFrame({"text": [f"odd: {'a' * (i % 60 + 1)} {i}" for i in range(100)]})
        assert extract_each(lines, {"n": pattern})["n"].to_list() == [str(i) for i in range(100)]
        assert field_extraction._searches((pattern,)).known == {}

    def test_lines_of_many_templates_keep_their_order(self) -> None:
        texts = [f"kind {'abcdefghijklmnopqrst'[i % 20]} value {i}" for i in range(5_000)]
        lines = pl.DataFrame({"text": texts})
        assert extract_each(lines, {"value": r"value (\d+)"})["value"].to_list() == [str(i) for i in range(5_000)]

    def test_no_lines_give_the_columns(self) -> None:
        empty = extract_each(pl.DataFrame(schema={"text": pl.String}), {"a": "(x)"})
        assert empty.schema == {"text": pl.String, "a": pl.String}
