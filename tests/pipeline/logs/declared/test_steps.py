"""Steps that follow from more than their own number: epochs and batches, tokens of a step, values in lines below."""

from __future__ import annotations

import itertools
import re
from functools import cache

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sweepscope.pipeline.errors import UsageError
from sweepscope.pipeline.logs.declared.compile import compile_document
from sweepscope.pipeline.logs.declared.document import read_document
from sweepscope.pipeline.logs.declared.explain import explain
from sweepscope.pipeline.logs.dialect import Dialect
from sweepscope.pipeline.logs.engine import cleaning, extract
from sweepscope.pipeline.text import lines
from tests.properties import draws

HEAD = 'name = "acme"\nsignature = ["[acme-trainer]"]\n'
BANNER = "[acme-trainer]\n"


@cache
def dialect(rules: str) -> Dialect:
    return compile_document(read_document(HEAD + rules, "acme.toml"))


def steps_of(log: str, rules: str, *names: str) -> list[tuple[object, ...]]:
    return extract.extract(lines.split(0, (BANNER + log).encode()), [dialect(rules)]).facts.steps.select(names).rows()


EPOCHS = "[[step]]\nline = 'Epoch [{epoch}/{epochs}][{epoch_step}/{epoch_steps}] loss {loss}'\n"
FROM_1 = f"{EPOCHS}first_epoch = 1\n"


def test_a_batch_of_an_epoch_is_a_step() -> None:
    log = "Epoch [1/3][50/100] loss 3.5\nEpoch [1/3][100/100] loss 3.0\nEpoch [2/3][50/100] loss 2.5\n"
    assert steps_of(log, FROM_1, "step", "steps_planned", "loss") == [
        (50, 300, 3.5),
        (100, 300, 3.0),
        (150, 300, 2.5),
    ]
    assert steps_of("Epoch [0/3][0/100] loss 3.5\nEpoch [2/3][7/100] loss 3\n", EPOCHS, "step") == [(0,), (207,)]
    assert steps_of("Epoch [0/3][5/100] loss 3.5\n", FROM_1, "step") == [(None,)], "there is no epoch before the first"


def test_an_epoch_of_unknown_length_is_as_long_as_its_largest_batch() -> None:
    rules = "[[step]]\nline = 'Epoch {epoch}, batch {epoch_step}, loss={loss}'\nfirst_epoch = 1\n"
    log = "".join(f"Epoch {epoch}, batch {batch}, loss=2.5\n" for epoch in (1, 2, 3) for batch in (0, 50, 99))
    expected = [epoch * 100 + batch for epoch in range(3) for batch in (0, 50, 99)]
    assert [step for (step,) in steps_of(log, rules, "step")] == expected
    from_1 = log.replace("batch 0", "batch 1").replace("batch 99", "batch 100")
    assert [step for (step,) in steps_of(from_1, rules, "step")] == [1, 50, 100, 101, 150, 200, 201, 250, 300]


def test_keys_and_values_may_count_batches() -> None:
    rules = "[[step]]\ncontains = ['train']\npairs = { ep = 'epoch', it = 'epoch_step', of = 'epoch_steps', loss = 'loss' }\nfirst_epoch = 1\n"
    log = "train ep=2 it=5 of=10 loss=2.5\nvalid ep=2 it=5 of=10 loss=2.4\n"
    assert steps_of(log, rules, "step", "loss") == [(15, 2.5)]


SAMPLES = """[[step]]
line = "Epoch {epoch} [{epoch_step}/{epoch_steps}] loss {loss}"
counts = "samples"
[[setting]]
line = "batch of {gbs}"
"""


def test_samples_are_steps_of_the_global_batch() -> None:
    log = "batch of 256\nEpoch 0 [512/2560] loss 3.5\nEpoch 1 [256/2560] loss 3\n"
    assert steps_of(log, SAMPLES, "step", "loss") == [(2, 3.5), (11, 3.0)]
    assert steps_of("Epoch 0 [512/2560] loss 3.5\n", SAMPLES, "step") == [(None,)]


ABOVE = """[[step]]
line = "{epoch_step}/{epoch_steps} loss {loss}"
epoch_line = "Epoch {epoch}/{epochs}"
first_epoch = 1
"""


def test_the_number_of_an_epoch_may_stand_above_its_steps() -> None:
    log = "".join(f"Epoch {epoch}/3\n50/100 loss 3.5\n100/100 loss 3.0\nEpoch {epoch}/3 done\n" for epoch in (1, 2))
    assert steps_of(log, ABOVE, "step", "steps_planned") == [(50, 300), (100, 300), (150, 300), (200, 300)]
    assert steps_of("50/100 loss 3.5\n", ABOVE, "step", "steps_planned") == [(50, None)]


def test_the_number_of_an_epoch_may_stand_below_its_steps() -> None:
    steps = "50/100 loss 3.5\n100/100 loss 3.0\n"
    log = "".join(f"{steps}Epoch {epoch}/3 - loss 3.2\n" for epoch in (1, 2)) + "50/100 loss 2.5\n"
    below = f'{ABOVE}epoch_line_is = "below"\n'
    assert steps_of(log, below, "step") == [(50,), (100,), (150,), (200,), (250,)]
    assert steps_of("50/100 loss 3.5\n", below, "step") == [(50,)]


@pytest.mark.parametrize(
    ("batches", "second"), [((0, 10, 90), 100), ((0, 10, 20, 97), 98), ((1, 10, 20, 98), 99), ((0,), 1)]
)
def test_an_epoch_above_its_steps_is_as_long_as_they_show(batches: tuple[int, ...], second: int) -> None:
    rules = "[[step]]\nline = 'batch {epoch_step} loss {loss}'\nepoch_line = 'epoch {epoch}:'\n"
    log = "".join(f"epoch {epoch}:\n" + "".join(f"batch {at} loss 2\n" for at in batches) for epoch in (0, 1))
    assert [step for (step,) in steps_of(log, rules, "step")][len(batches)] == second


@pytest.mark.parametrize(
    ("rules", "message"),
    [
        (ABOVE.replace("{epoch_step}", "{step}").replace("{epoch_steps}", "{_}"), "with an epoch_line it needs"),
        (ABOVE.replace("Epoch {epoch}/", "Epoch "), "epoch_line has no {epoch}"),
        (ABOVE.replace("{epoch}/", "{epoch}/{step}/"), "epoch_line: "),
    ],
)
def test_an_epoch_line_that_tells_no_epoch_is_refused(rules: str, message: str) -> None:
    with pytest.raises(UsageError, match=re.escape(message)):
        read_document(HEAD + rules, "acme.toml")


def test_samples_of_a_rank_are_steps_of_its_batch() -> None:
    rules = SAMPLES.replace('"samples"', '"rank_samples"').replace("{gbs}", "{mbs}")
    log = "batch of 64\nEpoch 0 [640/1000] loss 3.5\nEpoch 1 [640/1000] loss 3\n"
    assert steps_of(log, rules, "step", "step_basis") == [(10, "epoch"), (26, "epoch")]
    assert steps_of(log.replace("1000", "1280"), rules, "step", "step_basis") == [(10, None), (30, None)]


@pytest.mark.parametrize(
    ("line", "time", "rate"),
    [
        ("step 1 | 4096 tokens | took 2.0 s", 2.0, 2048.0),
        ("step 1 | 4096 tokens | 1024 tok/s", 4.0, 1024.0),
        ("step 1 | 4096 tokens | took 2.0 s | 2000 tok/s", 2.0, 2000.0),
        ("step 1 | 4096 tokens | took 0 s", 0.0, None),
        ("step 1 | 4096 tokens", None, None),
    ],
)
def test_tokens_of_a_step_and_its_time_or_rate_give_the_third(
    line: str, time: float | None, rate: float | None
) -> None:
    rules = (
        "[[step]]\nline = 'step {step} | {step_tokens} tokens {?| took {step_time:s}?} {?| {tokens_per_s} tok/s?}'\n"
    )
    assert steps_of(line, rules, "step_time_s", "tokens_per_s") == [(time, rate)]


BELOW = """[[step]]
line = "[step={step}/{steps_planned}"
below = { "train/loss" = "loss", "optim/norm" = "grad_norm", "peak (MB)" = "mem_reserved:MiB" }
"""
LOG = """\
    train/loss=9.0
[step=1/9,epoch=0]
    train/loss=3.5
    optim/norm=1.25
    peak (MB)=1,024
[step=2/9,epoch=0]
[step=3/9,epoch=0]
    optim/norm=1.5
    optim/norm=ERR
    eval/train/loss=8.0
    train/loss=3.0
"""


def test_values_below_a_step_are_of_that_step() -> None:
    names = ("step", "line_no", "loss", "grad_norm", "mem_reserved_bytes")
    assert steps_of(LOG, BELOW, *names) == [
        (1, 3, 3.5, 1.25, 1 << 30),
        (2, 7, None, None, None),
        (3, 8, 3.0, 1.5, None),
    ]


def test_values_below_are_told_apart_by_rank() -> None:
    log = "[rank0]:[step=1/9\n[rank1]:[step=1/9\n[rank0]:  train/loss=1.0\n[rank1]:  train/loss=2.0\n"
    assert steps_of(log, BELOW, "rank", "step", "loss") == [(0, 1, 1.0), (1, 1, 2.0)]


@settings(max_examples=draws(50))
@given(st.sets(st.integers(0, len(LOG) + len(BANNER)), max_size=4))
def test_it_does_not_matter_where_a_file_is_cut(cuts: set[int]) -> None:
    data = (BANNER + LOG).encode()
    known = [dialect(BELOW)]
    rows = lines.split(0, data)
    bounds = sorted({0, rows.height, *(data[:cut].count(b"\n") for cut in cuts)})
    parts = [rows[begin:end] for begin, end in itertools.pairwise(bounds)]
    merged = extract.merge([extract.extract(part, known, partial=[0]) for part in parts], known)
    assert merged.facts.steps.equals(extract.extract(rows, known).facts.steps)


def test_the_report_names_lines_below_a_step() -> None:
    rows = cleaning.clean(lines.split(0, (BANNER + LOG).encode()))
    said = explain(rows, read_document(HEAD + BELOW, "acme.toml"), [])
    assert (said.steps, said.rejects) == (3, 0)
    (below,) = [found for found in said.rules if found.label == "[[step]] 1, below"]
    assert (below.lines, below.values) == (6, {"loss": 9.0})
    assert [shape.text.strip() for shape in said.shapes] == ["eval/train/loss=8.0"]


def test_a_reject_stays_one_beside_values_below() -> None:
    rules = BELOW + "[[step]]\nline = 'it {step} loss {loss}'\n"
    log = "it 1 loss 2.5\nit 2 loss ERR\n  optim/norm=1.0\n"
    assert steps_of(log, rules, "step", "grad_norm", "text") == [(1, 1.0, None), (None, None, "it 2 loss ERR")]
    assert pl.DataFrame(steps_of("", rules, "step")).is_empty()
