"""A summary behind steps that tell no time."""

from __future__ import annotations

from tests.pipeline.ingest_in_memory import run_of

STEPS = "".join(f"Iteration {step}: loss={9 - step / 9:.4f}\n" for step in range(20))
SUMMARY = "=== Summary over 10 iterations ===\nStep time: 3.62s ± 0.01s (min=3.59s, max=3.63s)\n"


def test_the_step_time_of_a_summary_is_the_runs() -> None:
    run = run_of(STEPS + SUMMARY)
    assert (run["step_time_s"], run["step_time_basis"], run["status"]) == (3.62, "summary", "completed")


def test_so_is_that_of_a_long_log() -> None:
    noise = "".join(f"debug: buffer {number} of layer {number % 7} is at 0x{number:08x}\n" for number in range(1_500))
    text = "".join(line + "\n" + noise for line in STEPS.splitlines())
    assert run_of(text + SUMMARY)["step_time_s"] == 3.62


def test_a_run_that_failed_behind_its_steps_is_not_completed() -> None:
    text = 'Traceback (most recent call last):\n  File "a.py", line 9, in run\n    go()\nValueError: no\n'
    assert run_of(STEPS + SUMMARY + text)["status"] == "crash"


def test_what_steps_print_themselves_counts_more() -> None:
    timed = "".join(f"Iteration {step}: loss={9 - step / 9:.4f} step time: 1.50s\n" for step in range(20))
    run = run_of(timed + SUMMARY)
    assert (run["step_time_s"], run["step_time_basis"]) == (1.5, "steps")


def test_times_of_other_work_are_no_step_times() -> None:
    for text in (
        "Inference benchmark\nstep time: 0.02 s\n",
        "Average time per sample: 0.02 s\n",
        "decode throughput: 90 tokens/s\n",
    ):
        assert run_of(STEPS + text).get("step_time_s") is None, text
