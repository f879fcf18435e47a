"""A dialect file at work: lines as a trainer prints them, through the front door, to facts."""

from __future__ import annotations

from functools import cache
from typing import Any

import polars as pl
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from sweepscope.pipeline.logs.declared.compile import compile_document
from sweepscope.pipeline.logs.declared.configuration import read_configuration
from sweepscope.pipeline.logs.declared.document import read_document
from sweepscope.pipeline.logs.dialect import Dialect
from sweepscope.pipeline.logs.engine import extract
from sweepscope.pipeline.logs.facts import Facts
from sweepscope.pipeline.logs.registry import DIALECTS
from sweepscope.pipeline.text import lines
from tests.acme import CONFIG, DIALECT, LOG
from tests.properties import draws, stated_examples

LINES = LOG.splitlines(keepends=True)
HEAD = 'name = "acme"\nsignature = ["[acme-trainer]"]\n'


@cache
def dialect(text: str = DIALECT) -> Dialect:
    return compile_document(read_document(text, "acme.toml"))


def facts(log: str, text: str = DIALECT) -> Facts:
    return extract.extract(lines.split(0, log.encode()), [dialect(text)], partial=[0]).readings.get(
        "acme", Facts.empty()
    )


def step_of(line: str, rule: str) -> dict[str, Any]:
    found = facts(line, f"{HEAD}[[step]]\n{rule}").steps
    assert found.height == 1, found
    return {name: value for name, value in found.row(0, named=True).items() if value is not None}


def test_a_log_is_recognised_and_read() -> None:
    read = extract.extract(lines.split(0, LOG.encode()), [dialect(), *DIALECTS])
    assert read.dialect_of == {0: "acme"}
    steps = read.facts.steps
    assert steps["step"].to_list() == [1, 2, 3]
    assert steps["steps_planned"].to_list() == [3, 3, 3]
    assert steps["loss"].to_list() == [9.25, 8.125, 7.5]
    assert steps["step_time_s"].to_list() == [1.412, 0.4125, 0.4125]
    assert steps["tokens_per_s"].to_list() == [13800.0, 1_100_000.0, None]
    assert steps["grad_norm"].to_list() == [None, 1.25, None]
    assert steps["mem_reserved_bytes"].to_list() == [int(41.5 * 2**30), int(41.5 * 2**30), 42 * 2**30]
    said = read.facts.settings.select("name", "value", "setting_source").rows()
    assert said == [
        ("tp", "8", "log_line"),
        ("mbs", "4", "argument_dump"),
        ("precision", "bf16", "argument_dump"),
    ]
    assert read.facts.peaks.select("name", "value").rows() == [("mem_peak_allocated_bytes", 43.5 * 2**30)]
    assert read.facts.events.select("kind", "text").rows() == [("training_end", "2026-01-01 10:10:00 training done")]


def test_prefixes_colours_and_carriage_returns_are_gone_before() -> None:
    line = "step 2/3 | loss 8.0 | 412.5ms | 1.1M tok/s | mem 41GiB"
    redrawn = f"[default1]:{line}\r{line.replace('2/3', '3/3')}\r\n"
    log = f"[rank3]: \x1b[32m{line}\x1b[0m\r\n{redrawn}17: 2026-01-01 10:00:00 {line}\n"
    steps = facts(log).steps
    assert steps.select("rank", "step").rows() == [(3, 2), (1, 2), (1, 3), (17, 2)]
    assert steps["loss"].to_list() == [8.0] * 4


@pytest.mark.parametrize(
    "line",
    [
        "step 4/9 | loss ERR | 412.0ms | 13.8K tok/s | mem 41GiB",  # a value that is none
        "step 4 of 9 | loss 2.5 | 412.0ms | 13.8K tok/s | mem 41GiB",  # another separator
        "step 4/9 | loss 2.5 | lr 1e-4 | 412.0ms | 13.8K tok/s | mem 41GiB",  # a new field
        "step 4/9 | loss 2.5 | 412.0ms | 13.8K tok/s | mem 41TB",  # another unit
        "step 4/9 | loss 2.5 | 412.0ms | 13.8K to",  # cut within a word
        "step 4/9 | loss",  # cut behind one
        "step 4/9 |",
        "step 4/9",
    ],
)
def test_what_nearly_matches_is_a_reject(line: str) -> None:
    steps = facts(line).steps
    assert steps.select("step", "text").rows() == [(None, line)]


@pytest.mark.parametrize(
    "line",
    [
        "saved a checkpoint at step 4",
        "step 4 took long",
        "microstep 4/9 | loss 2.5 | 412.0ms | 13.8K tok/s | mem 41GiB",
        "loss 2.5 at the last step",
        "evaluating",
    ],
)
def test_what_only_shares_a_word_is_neither_step_nor_reject(line: str) -> None:
    assert facts(line).steps.is_empty()


UNITS: list[tuple[str, str, str, object]] = [
    ("step_time_s", "s", "1.5 s", 1.5),
    ("step_time_s", "s", "1.5", 1.5),
    ("step_time", "s", "1.5sec", 1.5),
    ("step_time_s", "ms", "412.5 ms", 0.4125),
    ("step_time_s", "ms", "1,412", 1.412),
    ("step_time_s", "us", "412500us", 0.4125),
    ("step_time_s", "us", "412500 µs", 0.4125),
    ("step_time_s", "ns", "412500000 ns", 0.4125),
    ("step_time_s", "min", "1.5 min", 90.0),
    ("step_time_s", "h", "0.5h", 1800.0),
    ("step_time_s", "s/line", "144.2 sec", 144.2),
    ("step_time_s", "ms/line", "412.5 ms", 0.4125),
    ("step_time_s", "min/line", "1.5 min", 90.0),
    ("step_time_s", "it/s", "4.00it/s", 0.25),
    ("step_time_s", "pace", "4.00it/s", 0.25),
    ("tflops_per_gpu", "FLOPs", "4.12e+14", 412.0),
    ("step_time_s", "pace", "1.25s/it", 1.25),
    ("step_time_s", "duration", "350 ms", 0.35),
    ("step_time_s", "duration", "1m 03s", 63.0),
    ("step_time_s", "duration", "1h 2m 3.5s", 3723.5),
    ("step_time_s", "duration", "2.5s", 2.5),
    ("step_time_s", "clock", "1:02:03.5", 3723.5),
    ("step_time_s", "clock", "02:03", 123.0),
    ("mem_reserved_bytes", "B", "1024 B", 1024),
    ("mem_reserved_bytes", "B", "1024", 1024),
    ("mem_reserved", "KB", "1.5KB", 1500),
    ("mem_reserved", "MB", "1.5 MB", 1_500_000),
    ("mem_reserved", "GB", "1.5", 1_500_000_000),
    ("mem_reserved", "TB", "1.5TB", 1_500_000_000_000),
    ("mem_reserved", "KiB", "2KiB", 2048),
    ("mem_reserved", "MiB", "2 MiB", 2 << 20),
    ("mem_allocated", "GiB", "2.5GiB", int(2.5 * 2**30)),
    ("mem_allocated", "TiB", "1TiB", 1 << 40),
    ("mem_allocated", "size", "800 MB", 800_000_000),
    ("mem_allocated", "size", "1GiB", 1 << 30),
    ("consumed_tokens", "int", "1,200,000", 1_200_000),
    ("consumed_tokens", "human", "1.2M", 1_200_000),
    ("consumed_tokens", "human", "13k", 13_000),
    ("consumed_tokens", "thousands", "1.2", 1200),
    ("consumed_tokens", "millions", "1.2", 1_200_000),
    ("consumed_tokens", "billions", "1.2B", 1_200_000_000),
    ("tokens_per_s", "human", "13.8K", 13_800.0),
    ("tokens_per_s", "float", "13800.5", 13_800.5),
    ("loss", "float", "2.5e-3", 0.0025),
    ("loss", "float", ".5", 0.5),
    ("loss", "float", "inf", float("inf")),
    ("mfu", "%", "41.25%", 0.4125),
    ("mfu_logged", "%", "41.25 %", 0.4125),
    ("mfu", "fraction", "0.4125", 0.4125),
    ("tflops_per_gpu", "TFLOPs", "412.5 TFLOP/s", 412.5),
    ("tflops_per_gpu", "float", "412.5", 412.5),
    ("tflops_per_gpu_logged", "GFLOPs", "412500 GFLOPs", 412.5),
    ("tflops_per_gpu", "PFLOPs", "0.4125", 412.5),
    ("rank", "int", "7", 7),
]


@pytest.mark.slow
@pytest.mark.parametrize(("column", "printed", "text", "value"), UNITS)
def test_every_unit_becomes_the_columns_own(column: str, printed: str, text: str, value: object) -> None:
    row = step_of(f"step 5 x {text} | end", f'line = "step {{step}} x {{{column}:{printed}}} | end"')
    (name,) = set(row) - {"source", "line_no", "step"}
    assert row[name] == pytest.approx(value)
    assert name.startswith(column)
    assert step_of(f"step 5 x {text}", f'line = "step {{step}} x {{{column}:{printed}}}"')[name] == pytest.approx(value)


def test_every_way_to_print_is_tested() -> None:
    from sweepscope.pipeline.logs.declared.units import KINDS

    texts = {"word", "text", "iso", "epoch"}  # below
    assert {printed for _, printed, _, _ in UNITS} | texts == set(KINDS)


@pytest.mark.parametrize(
    ("printed", "text"),
    [
        ("iso", "2026-01-31 12:00:59"),
        ("%d.%m.%Y %H:%M:%S", "31.01.2026 12:00:59"),
        ("epoch", "1769860859"),
        ("epoch", "1769860859000"),
        ("%b %d %Y %I:%M:%S %p", "Jan 31 2026 12:00:59 PM"),
    ],
)
def test_times(printed: str, text: str) -> None:
    row = step_of(f"[{text}] step 5", f'line = "[{{ts:{printed}}}] step {{step}}"')
    assert str(row["ts"]) == "2026-01-31 12:00:59"


def test_words_and_texts() -> None:
    rule = 'line = "on {accelerator:text} with {precision}, ok"'
    own = f'{HEAD}[[step]]\nline = "step {{step}}"\n[[setting]]\n{rule}\n'
    said = facts("on NVIDIA H100 80GB with 'bf16', ok\n", own).settings
    assert dict(said.select("name", "value").rows()) == {"accelerator": "NVIDIA H100 80GB", "precision": "bf16"}


@pytest.mark.parametrize(
    ("line", "value"),
    [("tp = 16", "16"), ("tp = 16.", "16"), ("tp = 16, pp", "16"), ("tp = 16x2", None), ("tp = 8.5", None)],
)
def test_a_number_at_the_end_is_whole_or_none(line: str, value: str | None) -> None:
    said = facts(line, f'{HEAD}[[step]]\nline = "step {{step}}"\n[[setting]]\nline = "tp = {{tp}}"\n').settings
    assert said["value"].to_list() == ([value] if value else [])


PAIRS = 'pairs = { step = "step", "train/loss" = "loss", dt_ms = "step_time:ms" }'


@pytest.mark.parametrize(
    "line",
    [
        '{"dt_ms": 412.5, "step": 7, "train/loss": 2.5}',
        "step=7 train/loss=2.5 dt_ms=412.5",
        "{'step': 7, 'train/loss': 2.5, 'dt_ms': 412.5, 'eval/train/loss': 9.0}",
        "microstep=3 step=7, train/loss=2.5, dt_ms=412.5",
    ],
)
def test_pairs_come_in_any_order(line: str) -> None:
    row = step_of(line, PAIRS)
    assert (row["step"], row["loss"], row["step_time_s"]) == (7, 2.5, 0.4125)


def test_pairs_that_are_missing_are_unknown_and_unreadable_ones_a_reject() -> None:
    assert "loss" not in step_of("step=7 dt_ms=412.5", PAIRS)
    assert step_of("step=7 train/loss=ERR dt_ms=1", PAIRS).keys() == {"source", "line_no", "text"}


def test_pairs_of_many_lines_are_those_of_each_line() -> None:
    own = f'{HEAD}[[step]]\npairs = {{ text = "step", place = "loss", dt = "step_time:ms" }}\n'
    odd = ["text=1 place=ERR dt=2", "text=2 dt=3ms", "place=3", "text=4 place=nan dt=None", "dt=5 text=5, place=1e-3."]
    texts = [*(f'{{"text": {at}, "place": {at}.5, "dt": 4{at}}}' for at in range(600)), *odd * 60]
    together = facts("\n".join(texts), own).steps.drop("source", "line_no")
    alone = {text: facts(text, own).steps.drop("source", "line_no") for text in dict.fromkeys(texts[590:605])}
    assert together.height == 600 + 4 * 60  # place=3 alone is no record
    assert together[590:604].equals(pl.concat(alone.values()))
    assert together["step"].null_count() == 60


PARTS = """parts = ["step {step}/{steps_planned}", "train loss {loss}", "({step_time:ms})", "({step_time:s})", "{tokens_per_s:human} tok/s"]
without = ["[val]"]
"""


@pytest.mark.parametrize(
    "line",
    [
        "step 7/9: train loss 2.5, 1.2K tok/s (412.5ms)",
        "(0.4125 s) 1,200 tok/s, val loss 3.1, train loss  2.5 in step 7/ 9\n",
    ],
)
def test_parts_come_in_any_order(line: str) -> None:
    step = step_of(line, PARTS)
    assert [step[name] for name in ("step", "steps_planned", "loss", "step_time_s", "tokens_per_s")] == [
        *(7, 9, 2.5, 0.4125, 1200.0)
    ]


def test_parts_that_are_missing_are_unknown_and_a_step_without_its_number_a_reject() -> None:
    text = f"{HEAD}[[step]]\n{PARTS}"
    assert step_of("step 7/9 done", PARTS) == {"source": 0, "line_no": 1, "step": 7, "steps_planned": 9}
    assert step_of("step x/9: train loss 2.5\n", PARTS)["text"].strip() == "step x/9: train loss 2.5"
    assert facts("[val] step 7/9: train loss 2.5\nnext step x\n", text).steps.is_empty()


@pytest.mark.parametrize("count", [1, 300])
def test_parts_of_many_lines_are_those_of_each_line(count: int) -> None:
    log = "".join(f"step {n}/{count}: train loss {n}.25 ({n}.5ms)\n" for n in range(1, count + 1))
    steps = facts(log, f"{HEAD}[[step]]\n{PARTS}").steps
    assert steps["step"].to_list() == list(range(1, count + 1))
    assert steps["loss"].to_list() == [n + 0.25 for n in range(1, count + 1)]


@pytest.mark.parametrize(
    ("separator", "line"),
    [
        (",", "7,2.5,0.1,412.5"),
        (", ", "2026-01-31 12:00:59 INFO 7, 2.5, 0.1, 412.5 ms"),
        ("\\t", "7\t2.5\tx y\t412.5"),
        ("|", "|   7 |  2.5 | x y | 412.5 |"),
        (" ", "  7   2.5  x  412.5"),
    ],
)
def test_cells_of_a_row(separator: str, line: str) -> None:
    rule = f'cells = ["step", "loss", "_", "step_time:ms"]\nseparator = "{separator}"'
    step = step_of(line, rule)
    assert [step[name] for name in ("step", "loss", "step_time_s")] == [7, 2.5, 0.4125]


def test_a_row_of_more_cells_is_none_and_a_missing_value_unknown() -> None:
    text = f'{HEAD}[[step]]\ncells = ["step", "loss"]\nseparator = ","'
    steps = facts("1,2.5\n2,\n3,N/A\n4,2.5,7\nstep,loss\n", text).steps.drop_nulls("step")
    assert steps.select("step", "loss").rows() == [(1, 2.5), (2, None), (3, None)]


@pytest.mark.parametrize(
    ("rule", "line"),
    [
        ('line = "[{epoch}/{epochs}][{epoch_step}/{epoch_steps}] loss {loss}"', "[2/3][5/100] loss 2.5"),
        ('parts = ["epoch {epoch}, batch {epoch_step}"]\nepoch_steps = 100', "epoch 2, batch 5"),
    ],
)
def test_steps_are_counted_within_their_epoch(rule: str, line: str) -> None:
    assert step_of(line, rule)["step"] == 205
    assert step_of(line, f"{rule}\nfirst_epoch = 1")["step"] == 105
    assert step_of(line, f"{rule}\nfirst_epoch = 1").get("steps_planned") in (300, None)


def test_an_expression_with_named_groups() -> None:
    rule = """regex = '^it (?P<step>\\d+): .*?loss (?P<loss>\\S+) in (?P<step_time>\\d+)'
contains = ["it ", "loss"]
units = { step_time = "ms" }"""
    row = step_of("it 7: mean loss 2.5 in 412", rule)
    assert (row["step"], row["loss"], row["step_time_s"]) == (7, 2.5, 0.412)
    assert step_of("it 7: loss gone", rule).get("step") is None


def test_the_first_rule_that_finds_a_line_reads_it_and_a_second_saves_it_from_the_rejects() -> None:
    own = f"""{HEAD}[[step]]
line = "step {{step}} loss {{loss}} time {{step_time:s}}"
[[step]]
line = "step {{step}} loss {{loss}} skipped"
"""
    steps = facts("step 1 loss 2.0 time 3.5s\nstep 2 loss 2.5 skipped\nstep 3 loss 2.5 hm\n", own).steps
    assert steps.select("step", "loss").rows() == [(1, 2.0), (2, 2.5), (None, None)]


def test_repeated_prints_of_a_step() -> None:
    own = f'{HEAD}repeated = "last"\n[[step]]\nline = "step {{step}} loss {{loss}}"\n'
    text = "[acme-trainer]\nstep 1 loss 2.0\rstep 1 loss 1.5\rstep 2 loss 1.0\n"
    read = extract.extract(lines.split(0, text.encode()), [dialect(own), *DIALECTS])
    assert read.facts.steps.select("step", "loss").rows() == [(1, 1.5), (2, 1.0)]


def test_a_configuration_beside_the_log() -> None:
    file = read_document(DIALECT, "acme.toml").files[0]
    assert read_configuration(CONFIG, file) == {"pp": "2", "model": "acme-7b"}
    for other in ("model: x", "[1, 2]", "", "parallel: [", "a: " + "[" * 5000, "&a [*a]"):
        with pytest.raises(ValueError, match=r"key|YAML|deep"):
            read_configuration(other, file)


@stated_examples(more=100)
@given(st.lists(st.sampled_from(LINES), max_size=30), st.integers(0, 30))
@example([], 0)
@example(LINES, 1)
@example(LINES * 2, 7)
@example([*LINES[::-1], *LINES], 12)
def test_cuts_between_lines_do_not_matter(texts: list[str], cut: int) -> None:
    def read(part: list[str], first: int) -> pl.DataFrame:
        block = lines.split(0, "".join(part).encode(), first)
        return extract.extract(block, [dialect()], partial=[0]).readings.get("acme", Facts.empty()).steps

    whole = read(texts, 1)
    assert pl.concat([read(texts[:cut], 1), read(texts[cut:], len(texts[:cut]) + 1)]).equals(whole)


@settings(max_examples=draws(100))
@given(st.lists(st.text(max_size=300), max_size=20))
def test_any_line_is_read_without_an_error(texts: list[str]) -> None:
    assert facts("\n".join(f"step {text}" for text in texts)).steps.height >= 0


def settings_of(log: str, rule: str) -> list[tuple[str, str]]:
    return facts(log, f"{HEAD}[[step]]\nline = 'step {{step}}'\n{rule}").settings.select("name", "value").rows()


def test_arguments_in_several_forms_and_their_words() -> None:
    rule = """[[arguments]]
line = ["{name}: {value}", "{name}={value}"]
columns = { fp16 = "precision", bf16 = "precision", update_freq = "gas", seq = "seq_len" }
words = { fp16 = { True = "fp16" }, bf16 = { True = "bf16", true = "bf16" } }
"""
    assert settings_of("Namespace(fp16=False, bf16=True, update_freq=[4], seq=2048)\n", rule) == [
        ("precision", "bf16"),
        ("gas", "4"),
        ("seq_len", "2048"),
    ]
    assert settings_of("{'fp16': True, 'update_freq': [4, 8], 'seq': None}\n", rule)[0] == ("precision", "fp16")
    assert settings_of("  bf16: true\n  seq: 4096\n", rule) == [("precision", "bf16"), ("seq_len", "4096")]


def test_words_of_a_file() -> None:
    text = (
        f"{HEAD}[[step]]\nline = 'step {{step}}'\n"
        + """[[file]]
name = "run.json"
requires = ["dtype"]
columns = { dtype = "precision", remat = "recompute", tp = "tp" }
words = { dtype = { bfloat16 = "bf16" }, remat = { True = "full" } }
"""
    )
    file = read_document(text, "acme.toml").files[0]
    assert read_configuration('{"dtype": "bfloat16", "remat": false, "tp": 2}', file) == {
        "precision": "bf16",
        "tp": "2",
    }
    assert read_configuration('{"dtype": "int4", "remat": true}', file) == {"recompute": "full"}
