"""What `dialect test` knows: what matched, where a near miss stops, and what was left over."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sweepscope.pipeline.logs.declared.document import read_document
from sweepscope.pipeline.logs.declared.explain import Explanation, explain
from sweepscope.pipeline.logs.declared.near import stop
from sweepscope.pipeline.logs.engine import cleaning
from sweepscope.pipeline.logs.registry import DIALECTS
from sweepscope.pipeline.text import lines
from tests.acme import DIALECT, LOG
from tests.properties import draws

DOCUMENT = read_document(DIALECT, "acme.toml")


def explained(log: str) -> Explanation:
    return explain(cleaning.clean(lines.split(0, log.encode())), DOCUMENT, DIALECTS)


def test_a_log_that_fits() -> None:
    said = explained(LOG)
    assert (said.lines, said.owner, said.signature) == (9, "acme", {"[acme-trainer]": 1})
    assert (said.steps, said.rejects, said.settings) == (3, 0, {"tp": "8", "mbs": "4", "precision": "bf16"})
    assert [(one.label, one.lines, one.nearly) for one in said.rules] == [
        ("[[step]] 1", 3, 0),
        ("[[setting]] 1", 1, 0),
        ("[[setting]] 2", 1, 0),
        ("[[event]] 1", 1, 0),
        ("[[arguments]] 1", 2, 0),
    ]
    step = said.rules[0]
    assert (step.location, step.line_no) == ("acme.toml:5", 5)
    assert step.values == {
        "step": 1,
        "steps_planned": 3,
        "loss": 9.25,
        "step_time_s": 1.412,
        "tokens_per_s": 13800.0,
        "mem_reserved_bytes": int(41.5 * 2**30),
    }
    assert said.unmatched == 1
    assert [shape.text for shape in said.shapes] == ["2026-01-01 10:00:00 [acme-trainer] starting on 16 GPUs"]


@pytest.mark.parametrize(
    ("line", "found", "wanted"),
    [
        ("step 4/9 | loss ERR | 4ms", "ERR | 4ms", "{loss}, such as 2.31 or 1e-4"),
        ("step 4 of 9 | loss 2.5", "of 9 | loss 2.5", "'/'"),
        ("step 4/9 | loss 2.5 | lr 1e-4 | 4ms", "lr 1e-4 | 4ms", "{step_time:ms}, such as 412.0 ms"),
        ("step 4/9 | lr 1e-4", "lr 1e-4", "'loss'"),
        ("step 4/9 | loss 2.5 | 412.0ms | 13.8K to", "to", "'tok/s'"),
        ("step 4/9 | loss", "", "{loss}, such as 2.31 or 1e-4"),
        (
            "step 4/9 | loss 2.5 | 4ms | 1K tok/s | gnorm 1.0 | mem 41G now",
            "G now",
            "the end of the value: name the unit that is printed, or write 'G' behind the field",
        ),
        ("µs äöü step 4/9 | loss ERR", "ERR", "{loss}, such as 2.31 or 1e-4"),
    ],
)
def test_where_a_near_miss_stops(line: str, found: str, wanted: str) -> None:
    template = DOCUMENT.steps[0].template
    assert template is not None
    at, why = stop(line, template)
    assert (line[at:], why) == (found, wanted)


def test_near_misses_of_a_step_are_its_rejects() -> None:
    said = explained(
        LOG + "step 4/9 | loss ERR | 412.0ms | 13.8K tok/s | mem 41GiB\nsaved at step 4\ntensor parallel = x\n"
    )
    step, setting = said.rules[0], said.rules[1]
    assert (said.rejects, step.nearly, setting.nearly) == (1, 1, 1)
    (near,) = step.near
    assert (near.line_no, near.text[near.at :][:3], near.is_reject) == (10, "ERR", True)
    assert not setting.near[0].is_reject
    assert [shape.text for shape in said.shapes] == [
        "2026-01-01 10:00:00 [acme-trainer] starting on 16 GPUs",
        "saved at step 4",
    ]


def test_while_nothing_fits_what_begins_alike_is_shown() -> None:
    said = explained("[acme-trainer]\nstep 4: all well\n")
    assert (said.steps, said.rejects, said.rules[0].nearly) == (0, 0, 1)
    assert said.rules[0].near[0].wanted == "'/'"


def test_arguments_that_were_not_asked_for_are_named() -> None:
    dumped = explained("arg micro_batch = 4\narg layers = 32\n").rules[-1]
    assert (dumped.lines, dumped.unused, dumped.unmapped) == (1, ("dtype",), ("layers",))


def test_a_log_of_another_trainer_is_told() -> None:
    assert explained("| Tokens/s/GPU: \nTokens per step: 1\n").owner == "picotron"
    assert explained("hello\n").owner is None
    assert explained("").lines == 0


def test_pairs_name_the_key_that_cannot_be_read() -> None:
    own = read_document(
        'name = "acme"\nsignature = ["[acme-trainer]"]\n[[step]]\npairs = { step = "step", loss = "loss" }\n', "a.toml"
    )
    rows = cleaning.clean(lines.split(0, b"step=7 loss=ERR\nstep=8 loss=2.5\n"))
    said = explain(rows, own, DIALECTS)
    assert (said.steps, said.rejects) == (1, 1)
    (near,) = said.rules[0].near
    assert (near.text[near.at :], near.wanted) == ("ERR", "a value of loss, such as 2.31 or 1e-4")


@pytest.mark.slow
@settings(max_examples=draws(100))
@given(st.lists(st.text(max_size=200), min_size=1, max_size=20))
def test_any_line_can_be_explained(texts: list[str]) -> None:
    assert explained("\n".join(f"step 4/9 | {text}" for text in texts)).rules[0].label == "[[step]] 1"
