"""Exceptions that Python passes over, which do not end a run."""

from __future__ import annotations

from sweepscope.pipeline.logs.engine import cleaning
from sweepscope.pipeline.logs.evidence import patterns
from sweepscope.pipeline.logs.evidence.ignored_exceptions import without_ignored
from sweepscope.pipeline.text import lines
from tests.pipeline.ingest_in_memory import run_of

TRACE = 'Traceback (most recent call last):\n  File "a.py", line 9, in run\n    go()\n{}: no such thing\n'
STEPS = "".join(
    f" iteration {step:8d}/      20 | consumed samples: {256 * step:12d} | elapsed time per iteration (ms): 812.5 | "
    "learning rate: 2.500000E-05 | global batch size:   256 | lm loss: 9.125000E+00 | loss scale: 1.0 |\n"
    for step in range(1, 10)
)
AT_EXIT = "Exception ignored in atexit callback: <function update_table at 0x7f26>\n" + TRACE.format(
    "FileNotFoundError"
)


def kinds(text: str) -> list[str]:
    block = cleaning.clean(lines.split(0, text.encode()))
    return without_ignored(patterns.events(block))["kind"].to_list()


def test_an_exception_at_exit_is_no_crash() -> None:
    assert run_of(f"{STEPS}{AT_EXIT}")["status"] == "truncated"
    assert run_of(f"{STEPS}{TRACE.format('ValueError')}")["status"] == "crash"


def test_a_crash_behind_an_ignored_exception_stays_one() -> None:
    assert run_of(f"{STEPS}{AT_EXIT}{TRACE.format('ValueError')}")["status"] == "crash"
    assert run_of(f"{STEPS}{TRACE.format('ValueError')}{AT_EXIT}")["status"] == "crash"


def test_of_every_wording_only_the_announcement_stays() -> None:
    heads = (
        "Exception ignored in: <function Pool.__del__ at 0x7f>",
        "Exception ignored while calling deallocator <function Pool.__del__ at 0x7f>",
        "Error in atexit._run_exitfuncs:",
        "--- Logging error ---",
    )
    for head in heads:
        assert kinds(f"{head}\n{TRACE.format('KeyError')}") == ["ignored_exception"], head


def test_one_raised_while_another_is_handled_is_ignored_with_it() -> None:
    chained = f"\nDuring handling of the above exception, another exception occurred:\n\n{TRACE.format('OSError')}"
    assert kinds(AT_EXIT + chained) == ["ignored_exception"]
    assert kinds(TRACE.format("KeyError") + chained) == ["traceback", "exception", "traceback", "exception"]


def test_processes_that_write_to_one_log_each_have_their_own() -> None:
    head, *trace = AT_EXIT.splitlines()
    mixed = "\n".join([head, head, trace[0], trace[0], *trace[1:], *trace[1:], TRACE.format("ValueError")])
    assert kinds(mixed) == ["ignored_exception"] * 2 + ["traceback", "exception"]
