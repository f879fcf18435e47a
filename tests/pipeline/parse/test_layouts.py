"""One pass over lines that share a layout finds what pattern by pattern finds."""

from __future__ import annotations

import re

import polars as pl
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from pipeline.parse import (
    deepspeed,
    gpt_neox,
    huggingface_dicts,
    layouts,
    litgpt,
    maxtext,
    megatron,
    nanogpt,
    nanotron,
    nemo,
    picotron,
    torchtitan,
    verl,
)
from pipeline.parse.layouts import extract_each

# A line of each format, and the patterns that its dialect runs.
FORMATS = {
    "megatron": (
        megatron._NUMBERS | {"past_loss": megatron._PAST_LOSS},
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
        huggingface_dicts._NUMBERS | {"complete": huggingface_dicts._COMPLETE},
        "{'loss': 1.2345, 'grad_norm': 0.512, 'learning_rate': 1.9e-05, 'epoch': 0.12}",
    ),
    "deepspeed": (
        deepspeed._STEPS | deepspeed._NUMBERS,
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
    "litgpt": (
        litgpt._FIELDS,
        "Epoch 1 | iter 4 step 1 | loss train: 2.512, val: n/a | iter time: 820.31 ms (step) remaining time: 0:12:34",
    ),
}  # fmt: skip


def one_by_one(lines: pl.DataFrame, patterns: dict[str, str]) -> pl.DataFrame:
    return lines.with_columns(pl.col("text").str.extract(pattern).alias(name) for name, pattern in patterns.items())


def damaged(line: str) -> st.SearchStrategy[str]:
    """The line with other digits, cut short, or with something in front."""
    digits = st.lists(st.sampled_from("0123456789"), min_size=len(line), max_size=len(line))
    other = digits.map(lambda new: "".join(n if c.isdigit() else c for c, n in zip(line, new, strict=True)))
    cut = st.tuples(other, st.integers(0, len(line))).map(lambda pair: pair[0][: pair[1]])
    signed = st.tuples(other, st.sampled_from("+-")).map(lambda pair: pair[0].replace("E-", f"E{pair[1]}"))
    longer = st.tuples(other, st.integers(0, len(line)), st.sampled_from(["0", "17", " ", "  ", "nan", "|", "x"]))
    inserted = longer.map(lambda three: three[0][: three[1]] + three[2] + three[0][three[1] :])
    return st.one_of(other, other, cut, signed, inserted)


@pytest.mark.parametrize("name", FORMATS)
@settings(max_examples=40, deadline=None, suppress_health_check=list(HealthCheck))
@given(data=st.data())
def test_layouts_find_what_the_patterns_find(name: str, data: st.DataObject) -> None:
    patterns, line = FORMATS[name]
    texts = [line] * layouts._MIN_LINES + data.draw(st.lists(damaged(line), min_size=1, max_size=40))
    order = data.draw(st.randoms(use_true_random=False))
    order.shuffle(texts)
    lines = pl.DataFrame({"text": texts})
    assert extract_each(lines, patterns).equals(one_by_one(lines, patterns))


@pytest.mark.parametrize("name", FORMATS)
def test_the_line_as_printed_has_a_layout_with_every_capture(name: str) -> None:
    patterns, line = FORMATS[name]
    layout = layouts._layout(line, tuple(patterns.items()))
    assert layout is not None
    captured = layout.captured
    whole = pl.DataFrame({"text": [line]}).select(pl.col("text").str.extract_groups(layout.expression))
    found = whole.to_series().struct
    alone = one_by_one(pl.DataFrame({"text": [line]}), patterns).row(0, named=True)
    assert {name: found.field(group).item() for name, group in captured.items()} == {
        name: alone[name] for name in captured
    }
    assert set(captured) == {name for name in patterns if alone[name] is not None}


class TestLayout:
    def test_a_capture_that_ends_within_a_number_has_none(self) -> None:
        assert layouts._layout("code 1234", (("half", r"code (\d{2})"),)) is None

    def test_captures_that_overlap_have_none(self) -> None:
        assert layouts._layout("ab cd ef", (("left", "(ab cd)"), ("right", "(cd ef)"))) is None

    def test_captures_may_lie_in_each_other(self) -> None:
        lines = pl.DataFrame({"text": [f"a={i} b={i * 2};" for i in range(300)]})
        patterns = {"all": r"(a=\d+ b=\d+)", "b": r"b=(\d+)", "same": r" b=(\d+)", "none": r"c=(\d+)"}
        assert layouts._layout("a=1 b=2;", tuple(patterns.items())) is not None
        assert extract_each(lines, patterns).equals(one_by_one(lines, patterns))

    def test_an_empty_capture_counts_as_found(self) -> None:
        lines = pl.DataFrame({"text": ["end: 5 x"] * 300})
        assert extract_each(lines, {"mark": r"end: \d+( *?) x"})["mark"].to_list() == [""] * 300

    def test_a_layout_known_from_other_lines_serves_these_too(self) -> None:
        patterns = {"x": r"x=(\d+)", "y": r" y=(\d+(?:\.\d+)?)"}
        first, second = ([f"x={i * scale} y={i}.5" for i in range(300)] for scale in (1, 1_000_000))
        for texts in (first, second, second + ["x=1 y=2.55", "x=1 y=2", "x= y=2.5", "x=1  y=2.5"] * 100):
            lines = pl.DataFrame({"text": texts})
            assert extract_each(lines, patterns).equals(one_by_one(lines, patterns))
        assert len([known for known, _ in layouts._known if known == tuple(patterns.items())]) > 1
        assert len(layouts._known) <= layouts._MAX_KNOWN

    @pytest.mark.parametrize(
        ("pattern", "other", "fits"),
        [
            (r"v:\s+(\d+K)\|", "v:   7K|", True),
            (r"v: (\d+K)\|", "v:   7K|", False),
            (r"v: +(\d+[KMB]?)\|", "v: 7M|", True),
            (r"v: +(\d+K?)", "v: 7M|", False),
        ],
    )
    def test_gaps_and_units_may_vary_where_the_pattern_lets_them(self, pattern: str, other: str, fits: bool) -> None:
        layout = layouts._layout("v: 12K|", (("v", pattern),))
        assert layout is not None
        assert (re.search(layout.expression, other) is not None) == fits

    def test_lines_of_many_layouts_keep_their_order(self) -> None:
        texts = [f"kind {'abcdefghijklmnopqrst'[i % 20]} value {i}" for i in range(5_000)]
        lines = pl.DataFrame({"text": texts})
        assert extract_each(lines, {"value": r"value (\d+)"})["value"].to_list() == [str(i) for i in range(5_000)]

    def test_no_lines_give_the_columns(self) -> None:
        empty = extract_each(pl.DataFrame(schema={"text": pl.String}), {"a": "(x)"})
        assert empty.schema == {"text": pl.String, "a": pl.String}
