"""A time in every tenth line is of one step or of ten: what else the lines print shows which."""

from __future__ import annotations

from datetime import datetime, timedelta

import pytest

from tests.pipeline.ingest_in_memory import tables_of

EVERY = 10
SECONDS = 2.5
PLANNED = 400
HEAD = "world_size=8 dp=8 micro_batch_size=4 global_batch_size=64 seq_len=2048 params: 1.25B\n"
TOKENS = 64 * 2048


def log(line: str, *, of_steps: int = 1, head: str = "") -> str:
    """Every tenth step of 200, each SECONDS long; `time` is that of so many steps."""
    begun = datetime(2026, 12, 31, 23, 58)
    rows = []
    for step in range(EVERY, 201, EVERY):
        now = begun + timedelta(seconds=step * SECONDS)
        left = timedelta(seconds=int((PLANNED - step) * SECONDS))
        rows.append(
            line.format(
                step=step,
                loss=2 + 8 / step,
                time=f"{of_steps * SECONDS + step % 3 / 100:.2f}s",
                now=now,
                glog=f"{now:%m%d %H:%M:%S}",
                left=left,
                minutes=f"{left.seconds // 60}m {left.seconds % 60}s",
                rate=f"{TOKENS / SECONDS / 1e3:.1f}K",
                own_rate=f"{TOKENS / SECONDS / 8:.0f}",
                tflops=f"{6 * 1.25e9 * TOKENS / SECONDS / 8 / 1e12:.1f}",
            )
        )
    return head + "".join(f"{row}\n" for row in rows)


def step_times(text: str) -> set[float]:
    steps = tables_of({"train.log": text})["steps"]
    return {round(value, 1) for value in steps["step_time_s"].drop_nulls()}


@pytest.mark.parametrize("of_steps", [1, EVERY])
@pytest.mark.parametrize(
    "line",
    [
        "[{now:%H:%M:%S}] step {step} loss {loss:.4f} t {time}",
        "{now:%m/%d %H:%M:%S} step {step} loss {loss:.4f} t {time}",
        "I{glog}.123456 4711 train.py:88] step {step} loss {loss:.4f} t {time}",
        "{now:%b %d %H:%M:%S} step {step} loss {loss:.4f} t {time}",
        "step {step}/400 loss {loss:.4f} t {time} eta {left}",
        "step {step}/400 loss {loss:.4f} t {time} remaining: {minutes}",
        "step {step} loss {loss:.4f} t {time} tps {rate}",
        "step {step} loss {loss:.4f} t {time} tok/s/gpu {own_rate}",
        "step {step} loss {loss:.4f} t {time} tflops {tflops}",
    ],
)
def test_what_else_a_line_prints_tells_of_how_many_steps_a_time_is(line: str, of_steps: int) -> None:
    times = step_times(log(line, of_steps=of_steps, head=HEAD))
    assert times == {SECONDS} if of_steps == 1 else times <= {SECONDS}


def test_without_another_figure_such_a_time_is_not_believed() -> None:
    assert step_times(log("step {step} loss {loss:.4f} t {time}", head=HEAD)) == set()


def test_a_time_and_a_rate_that_agree_with_the_batch_settle_each_other() -> None:
    (run,) = tables_of({"train.log": log("step {step} loss {loss:.4f} t {time} tps {rate}", head=HEAD)})[
        "runs"
    ].to_dicts()
    assert run["tokens_per_s"] == pytest.approx(TOKENS / SECONDS, rel=0.01)


def test_a_rate_that_fits_both_ways_settles_nothing() -> None:
    """Eight cards and a line in every eighth step: a time of one step at the job's rate, or of eight at a card's."""
    rows = "".join(f"step {step} loss {2 + 8 / step:.4f} t 2.50s tps 52428\n" for step in range(8, 161, 8))
    assert step_times(HEAD + rows) == set()
