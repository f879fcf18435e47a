"""Notebooks as the lines that they printed."""

from __future__ import annotations

import json

from sweepscope.pipeline.io.log_envelopes import envelope
from sweepscope.pipeline.io.notebook import lines_of_notebook

TABLE = """
<div><progress value='20' max='20'></progress> [20/20 00:40, Epoch 1/1]</div>
<table border="1" class="dataframe"><thead><tr><th>Step</th><th>Training Loss</th><th>Validation Loss</th></tr></thead>
<tbody><tr><td>10</td><td>2.500000</td><td>No log</td></tr><tr><td>20</td><td>1.250000</td><td>2.4</td></tr></tbody></table>
"""


def notebook(*outputs: dict[str, object], source: object = "trainer.train()") -> bytes:
    cells = [
        {"cell_type": "markdown", "source": ["step 99 loss 9.9"]},
        {"cell_type": "code", "source": "never_run(step=98)", "outputs": []},
        {"cell_type": "code", "source": source, "outputs": list(outputs)},
    ]
    return json.dumps({"nbformat": 4, "nbformat_minor": 0, "metadata": {}, "cells": cells}, indent=1).encode()


def lines(*outputs: dict[str, object]) -> list[str]:
    text = notebook(*outputs)
    unpack = envelope(text[:100])
    assert unpack is not None
    return b"".join(unpack([text])).decode().splitlines()


def test_output_follows_the_code_of_its_cell() -> None:
    stream = {"output_type": "stream", "text": ["step 1 loss 2.5\n", "step 2 loss 2.4\n"]}
    result = {"output_type": "execute_result", "data": {"text/plain": ["TrainOutput(global_step=2)"]}}
    assert lines(stream, result) == [
        "trainer.train()",
        "step 1 loss 2.5",
        "step 2 loss 2.4",
        "TrainOutput(global_step=2)",
    ]


def test_a_table_of_the_trainer_is_a_record_for_each_row() -> None:
    shown = lines({"output_type": "display_data", "data": {"text/html": TABLE, "text/plain": "<IPython object>"}})
    assert shown[1] == "[20/20 00:40, Epoch 1/1]"
    assert [json.loads(line) for line in shown[2:]] == [
        {"Step": 10, "Training Loss": 2.5, "Validation Loss": "No log"},
        {"Step": 20, "Training Loss": 1.25, "Validation Loss": 2.4},
    ]


def test_an_error_is_its_traceback() -> None:
    error = {"output_type": "error", "ename": "E", "traceback": ["Traceback\n  line 1", "E: out of memory"]}
    assert lines(error)[1:] == ["Traceback", "  line 1", "E: out of memory"]


def test_other_json_stays_as_it_is() -> None:
    for text in (b'{"metadata": {"step": 1}}', b'{"cells": ', b'{"cells": [1], "nbformat": 4}', b'{"cells": 3}'):
        assert lines_of_notebook(text) in (text, b"")
