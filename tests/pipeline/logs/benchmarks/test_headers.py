"""Which lines announce launches, and what looks like such lines and is none."""

from __future__ import annotations

import pytest

from sweepscope.pipeline.logs.benchmarks.headers import Printed, headers

DECAY = [3.0, 2.5, 2.0]


def log(*parts: str | list[tuple[int, float]]) -> tuple[list[tuple[int, str]], Printed]:
    """Lines, with steps where a part is a list of their numbers and losses; a line with OOM tells of a failure."""
    rows: list[tuple[int, str]] = []
    steps: dict[int, tuple[int, float | None]] = {}
    for part in parts:
        for one in [part] if isinstance(part, str) else part:
            line_no = len(rows) + 1
            if not isinstance(one, str):
                steps[line_no] = one
            rows.append((line_no, one if isinstance(one, str) else f"it {one[0]} loss {one[1]}"))
    return rows, Printed(steps, {line_no for line_no, text in rows if "OOM" in text})


def steps(begin: int, losses: list[float] = DECAY) -> list[tuple[int, float]]:
    return list(enumerate(losses, begin))


@pytest.mark.parametrize(
    "form",
    [
        "##### tp={tp} micro_batch_size={mbs} #####",
        "-> Running config: TP={tp} PP=1 MBS={mbs}",
        "Running experiment {tp}/4: tp{tp}_mbs{mbs}",
        "+ torchrun --nproc_per_node 8 pretrain.py --tp {tp} --mbs {mbs}",
        "Launching with tensor_parallel_size={tp}, micro_batch_size={mbs}",
    ],
)
def test_a_line_with_other_settings_before_each_fresh_start_announces_a_launch(form: str) -> None:
    rows, printed = log(
        *(form.format(tp=1, mbs=1), steps(1), form.format(tp=2, mbs=4), "OOM", form.format(tp=4, mbs=4), steps(1))
    )
    assert headers(rows, printed) == [1, 5, 7]


def test_one_block_of_settings_is_one_header() -> None:
    block = "zero_stage: {}", "micro_batch_size: {}", "seq_length: 4096"
    rows, printed = log(*(line.format(1) for line in block), steps(0), *(line.format(2) for line in block), steps(0))
    assert headers(rows, printed) == [1, 7]


@pytest.mark.parametrize(
    "parts",
    [
        pytest.param(("tp=2 mbs=1 seq=2048", steps(1), "tp=2 mbs=1 seq=2048", steps(4)), id="a requeued job"),
        pytest.param(("tp=2 mbs=1", steps(1), "Epoch 2", steps(1)), id="a configuration and an epoch"),
        pytest.param(("seq=2048 mbs=4", steps(1), "seq=4096 mbs=2", steps(4)), id="stages that count on"),
        pytest.param(
            ("seq=2048 mbs=4", steps(1), "seq=4096 mbs=2", steps(1, [2.0, 1.8])), id="stages whose loss goes on"
        ),
        pytest.param(("tp=1 mbs=1", "tp=2 mbs=1", "tp=4 mbs=1", steps(1)), id="a list of plans"),
        pytest.param(
            ("tp=2 mbs=4", steps(1), "eval: batch_size=8", steps(4), "eval: batch_size=16", steps(7)), id="evaluations"
        ),
        pytest.param(("n_layers: 24", "seed: 1", "n_gpus: 8", steps(1), "saved to run_n8_mbs2", "OOM"), id="a dump"),
        pytest.param(("tp=1 mbs=1", "hello", "tp=2 mbs=1", "hello", "tp=4 mbs=1", "hello"), id="nothing happened"),
    ],
)
def test_other_lines_with_settings_announce_nothing(parts: tuple[str | list[tuple[int, float]], ...]) -> None:
    assert headers(*log(*parts)) == []
