"""The values of a dialect file, and the file with other meanings."""

from __future__ import annotations

import tomllib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sweepscope.pipeline.errors import UsageError
from sweepscope.pipeline.logs.declared.corrections import constants_of, corrected, example_of, values_of
from sweepscope.pipeline.logs.declared.document import read_document
from sweepscope.pipeline.logs.declared.same_form import merged, steps_of
from sweepscope.pipeline.logs.declared.toml_writer import bare, toml_value

FILE = """\
name = "my-trainer"

[[step]]
parts = ["it {step}/{steps_planned}", "nll {loss}", "took {_}", "rate {tokens_per_s:human} tok", "rate={tokens_per_s:human}"]
contains = ["nll"]
below = { "gpu mem" = "mem_reserved:GiB" }

[[arguments]]
line = "{name} = {value}"
columns = { "tensor_parallel" = "tp", "bf16" = "precision" }
words = { "bf16" = { "True" = "bf16" } }

[[setting]]
line = "running on {num_gpus} cards"
"""
EXAMPLE = "it 3/40 | nll 2.31 | took 0.412 | rate 13.8K tok"
TABLE = 'name = "x"\nsignature = ["n,ce,sec"]\n[[step]]\ncells = ["step", "loss", "_"]\nseparator = ","\n'


def test_values_and_their_examples() -> None:
    shown = [(value.printed, value.meaning, value.example) for value in values_of(FILE, EXAMPLE)]
    assert shown == [
        ("it …/·", "step", "3"),
        ("it ·/…", "steps_planned", "40"),
        ("nll …", "loss", "2.31"),
        ("took …", "_", "0.412"),
        ("rate … tok", "tokens_per_s:human", "13.8K"),
        ("gpu mem", "mem_reserved:GiB", ""),
        ("tensor_parallel", "tp", ""),
        ("bf16", "precision", ""),
        ("running on … cards", "num_gpus", ""),
    ]


def test_the_cells_of_a_table_are_named_by_its_header() -> None:
    shown = [(value.printed, value.meaning, value.example) for value in values_of(TABLE, "7,2.31,0.4")]
    assert shown == [("n", "step", "7"), ("ce", "loss", "2.31"), ("sec", "_", "0.4")]
    other = corrected(TABLE, {"step 0 sec": "step_time:s"}, name="x")
    assert read_document(other, "x").steps[0].columns == ["step", "loss", "step_time_s"]


def test_a_value_with_several_pieces_is_corrected_in_all_of_them() -> None:
    other = corrected(FILE, {"step 0 tokens_per_s": "tokens_per_s_per_gpu:human"}, name="zephyr")
    parts = tomllib.loads(other)["step"][0]["parts"]
    assert parts[3:] == ["rate {tokens_per_s_per_gpu:human} tok", "rate={tokens_per_s_per_gpu:human}"]


def test_rules_that_fill_nothing_any_more_are_left_out() -> None:
    keys = [
        value.key for value in values_of(FILE) if value.meaning in ("tp", "precision", "num_gpus", "mem_reserved:GiB")
    ]
    data = tomllib.loads(corrected(FILE, dict.fromkeys(keys, "_"), name="zephyr"))
    assert data.keys() == {"name", "step"}
    assert "below" not in data["step"][0]


def test_constants_are_replaced_by_folder() -> None:
    first = corrected(FILE, {}, name="a", constants={"gbs": 4}, folder="/a/", example=EXAMPLE)
    second = corrected(first, {}, name="a", constants={"gbs": 8, "model": "x"})
    assert (constants_of(second, "/a"), constants_of(second)) == ({"gbs": 4}, {"gbs": 8, "model": "x"})
    assert constants_of(corrected(second, {}, name="a", constants={}, folder="/a"), "/a") == {}
    assert example_of(first) == EXAMPLE
    assert [dict(one.values) for one in read_document(second, "a").constants] == [
        {"gbs": "4"},
        {"gbs": "8", "model": "x"},
    ]


@given(
    st.lists(
        st.sampled_from(["loss", "_", "step_time:ms", "tokens_per_s", "grad_norm", "mfu:%"]), min_size=4, max_size=4
    )
)
def test_what_is_corrected_is_a_dialect_file_or_refused(meanings: list[str]) -> None:
    """No correction gives a file that cannot be read, and one that is undone gives the file as it was."""
    keys = [value.key for value in values_of(FILE) if value.is_step and not value.is_counter][1:4]
    try:
        other = corrected(FILE, dict(zip(keys, meanings, strict=False)), name="zephyr")
    except UsageError as error:
        assert "both taken for" in str(error)  # noqa: PT017 -- the law is about both outcomes
        return
    assert read_document(other, "zephyr").name == "zephyr"
    now = [value.meaning for value in values_of(other) if value.is_step and not value.is_counter][1:4]
    assert len(now) == len(keys)


def test_files_of_logs_that_print_steps_alike_are_one() -> None:
    other = FILE.replace('"tensor_parallel" = "tp"', '"pipeline" = "pp"').replace("running on", "started on")
    assert steps_of(FILE) == steps_of(other)
    assert steps_of(FILE) != steps_of(FILE.replace("took", "time"))
    data = tomllib.loads(merged([bare(FILE), bare(FILE), bare(other)]))
    assert data["arguments"][0]["columns"] == {"pipeline": "pp", "bf16": "precision", "tensor_parallel": "tp"}
    assert [one["line"] for one in data["setting"]] == ["running on {num_gpus} cards", "started on {num_gpus} cards"]
    assert read_document(merged([FILE, other]), "both").settings


@given(
    st.recursive(st.text() | st.integers() | st.booleans(), lambda one: st.lists(one) | st.dictionaries(st.text(), one))
)
def test_what_is_written_is_read_again(value: object) -> None:
    assert tomllib.loads(f"x = {toml_value(value)}")["x"] == value


def test_a_key_that_is_not_there_is_refused() -> None:
    with pytest.raises(UsageError, match="no value 'x'"):
        corrected(FILE, {"x": "loss"}, name="a")
