"""Records of steps in other arrangements, as a line per step."""

from __future__ import annotations

import json
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from sweepscope.pipeline.io.log_envelopes import envelope, is_of_training
from sweepscope.pipeline.io.record_forms import dllogger_line, lines_of_columns, lines_of_values


def records(text: bytes) -> list[dict[str, Any]]:
    return [json.loads(line) for line in text.splitlines()]


def unpacked(text: bytes) -> bytes:
    unpack = envelope(text[:8192])
    return b"".join(unpack([text])) if unpack else text


def test_dllogger_gives_a_line_per_step_and_keeps_what_is_no_record() -> None:
    text = (
        b'DLLL {"type": "METADATA", "metric": "loss", "metadata": {"unit": null}}\n'
        b'DLLL {"datetime": "2025-03-04 09:12:00", "type": "LOG", "step": "PARAMETER", "data": {"gpus": 8}}\n'
        b'DLLL {"datetime": "2025-03-04 09:12:02", "type": "LOG", "step": [1, 40], "data": {"loss": 2.5}}\n'
        b'DLLL {"type": "LOG", "step": 41, "data": {"loss": 2.4}}\n'
        b'DLLL {"type": "LOG", "step": [], "data": {"final_loss": 2.4}}\n'
        b"a line of another logger\n"
    )
    lines = unpacked(text).splitlines()
    assert lines[0].startswith(b"DLLL {")
    assert lines[-1] == b"a line of another logger"
    assert records(b"\n".join(lines[1:-1])) == [
        {"datetime": "2025-03-04 09:12:00", "gpus": 8},
        {"datetime": "2025-03-04 09:12:02", "epoch": 1, "step": 40, "loss": 2.5},
        {"step": 41, "loss": 2.4},
        {"final_loss": 2.4},
    ]


def test_a_line_of_dllogger_that_was_cut_stays_as_it_is() -> None:
    assert dllogger_line(b'DLLL {"step": 1, "da') == b'DLLL {"step": 1, "da\n'


_VALUES = st.lists(
    st.tuples(st.sampled_from(["loss", "lr", "tok/s"]), st.integers(0, 50), st.floats(-9, 9)),
    min_size=1,
    unique_by=lambda one: one[:2],
)


@given(_VALUES)
def test_every_value_of_a_line_per_value_is_in_the_record_of_its_step(values: list[tuple[str, int, float]]) -> None:
    text = "".join(f"{json.dumps({'name': n, 'value': v, 'step': s})}\n" for n, s, v in values).encode()
    found = records(lines_of_values(text))
    assert {(name, row["step"], value) for row in found for name, value in row.items() if name != "step"} == {*values}
    assert [row["step"] for row in found] == sorted({step for _, step, _ in values})


def test_messages_of_clearml_and_comet_are_values() -> None:
    clearml = {"type": "training_stats_scalar", "metric": "loss", "variant": "train", "value": 2.5, "iter": 3}
    comet = {"type": "metric_msg", "payload": {"metric": {"metricName": "loss", "metricValue": 2.5}, "step": 3}}
    assert records(lines_of_values(json.dumps(clearml).encode())) == [{"step": 3, "train/loss": 2.5}]
    assert records(lines_of_values(json.dumps(comet).encode())) == [{"step": 3, "loss": 2.5}]


def test_a_step_that_comes_again_is_of_a_launch_of_its_own() -> None:
    steps = [1, 2, 3, 2, 3, 4]
    text = "".join(f'{{"name": "loss", "value": {9 - at}, "step": {step}}}\n' for at, step in enumerate(steps)).encode()
    found = records(lines_of_values(text))
    assert [(row["step"], row["loss"]) for row in found] == [(1, 9), (2, 8), (3, 7), (4, 4), (2, 6), (3, 5)]


def test_columns_and_series_become_rows() -> None:
    columns = b'{"step": [1, 2], "loss": [2.5, NaN], "name": "tp2"}'
    assert [row["step"] for row in records(lines_of_columns(columns))] == [1, 2]
    series = {
        "train.loss": {"steps": [1, 2], "timestamps": ["a", "b"], "values": [2.5, 2.4]},
        "lr": {"steps": [2], "values": [1e-3]},
    }
    assert records(unpacked(json.dumps(series, indent=2).encode())) == [
        {"timestamp": "a", "step": 1, "train.loss": 2.5},
        {"timestamp": "b", "step": 2, "train.loss": 2.4, "lr": 1e-3},
    ]


def test_other_documents_and_data_stay_as_they_are() -> None:
    for text in (
        b'{"loss": [1, 2], "lr": [1]}',
        b'{"shape": [1, 2], "inner": {"a": 1}}',
        b'{"loss": [1, 2',
        b'{"id": 1, "text": "a step"}\n',
    ):
        assert unpacked(text) == text
    assert not is_of_training(b'{"id": 1, "name": "Ada", "value": "7"}\n{"id": 2, "name": "Bob", "value": "8"}\n')
    one_value = b'{"name": "loss", "value": 1, "step": 1}\n'
    assert lines_of_values(one_value + b"no record\n") == one_value + b"no record\n"
