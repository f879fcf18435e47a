"""Sentences of the page on failures and cost."""

from __future__ import annotations

from typing import Any

import polars as pl
import pytest

from sweepscope.dashboard.text import failure_lists as list_texts
from sweepscope.dashboard.text import failures as texts
from sweepscope.dashboard.view_models.failures import Pattern

Row = dict[str, Any]
_NBSP = "\xa0"


def totals(**changes: Any) -> Row:
    return {
        "runs_tried": 13,
        "runs_judged": 10,
        "runs_failed": 4,
        "runs_cut_off": 0,
        "runs_running": 1,
        "runs_held": 0,
        "gpu_hours_held": None,
        "gpu_hours_kept": None,
        "failure_rate_low": 0.168,
        "failure_rate_high": 0.687,
        "gpu_hours": 50.0,
        "gpu_hours_lost": 12.5,
        "runs_without_gpu_hours": 2,
        "failures_without_gpu_hours": 1,
        "usd": None,
        "usd_lost": None,
        "gpu_hours_priced": None,
    } | changes


def ending(outcome: str, runs: int) -> Row:
    return {"outcome": outcome, "runs": runs, "gpu_hours": 1.0, "runs_without_gpu_hours": 0}


def pattern(*, is_above: bool = True) -> Pattern:
    return Pattern("mbs", "MBS8", judged=14, failed=8, rate=8 / 14, low=0.33, high=0.79, is_above=is_above)


NO_SEARCH = {
    "gpu_hours_until_winner": None,
    "gpu_hours_of_cells_in_order": None,
    "cells_in_order": 0,
    "cells_answered": 2,
}
ENDINGS = [ending("completed", 6), ending("oom", 3), ending("hang", 1), ending("undecided", 3)]


def test_the_answer_says_how_many_why_which_and_at_what_cost() -> None:
    assert texts.answer(totals(), ENDINGS, [pattern()]).replace(_NBSP, " ") == (
        "**4 of 10 runs failed (40 %)**; 3 of them ran out of GPU memory. "
        "**MBS8 fails most:** 57 % of its 14 runs failed (95 % interval 33 % to 79 %). "
        "Failures took 12.5 of 50.0 GPU-hours (25 %)."
    )


def test_the_answer_tells_of_gpus_held_after_the_end() -> None:
    text = texts.answer(totals(runs_held=2, gpu_hours_held=509.2), ENDINGS, [])
    assert text.endswith("**2 completed runs then held the GPUs for 509 GPU-hours** until something ended the job.")
    kept = texts.answer(totals(gpu_hours_lost=100.0, gpu_hours_kept=93.0), ENDINGS, [])
    assert "of that was kept" not in texts.answer(totals(gpu_hours_lost=100.0, gpu_hours_kept=0.4), ENDINGS, [])
    assert "93 % of that was kept: later attempts went on from its steps." in kept.replace("\N{NO-BREAK SPACE}", " ")
    all_well = totals(runs_failed=0, runs_held=1, gpu_hours_held=None)
    assert texts.answer(all_well, ENDINGS, []).endswith(
        "1 completed run then held the GPUs until something ended the job."
    )


def test_an_idle_run_says_what_was_idle() -> None:
    row = {"model": None, "layout": None, "source_path": "/logs/a.out", "gpu_hours_held": None, "gpu_hours_idle": 3.0}
    row |= {"lingering": True, "is_gpu_busy": None}
    assert list_texts.idle_line(row) == (
        "/logs/a.out",
        "3.0 GPU-hours beyond the log; processes outlived their signals",
    )
    held = row | {"model": "8B", "layout": "DP8", "gpu_hours_held": 2.5, "lingering": None, "is_gpu_busy": True}
    assert list_texts.idle_line(held) == (
        "8B · DP8",
        "2.5 GPU-hours held after the end; its GPUs were in use before it began",
    )


def test_idle_hours_are_summed_as_far_as_they_are_known() -> None:
    hours = {"gpu_hours_idle": [2.0, 1.5], "gpu_hours_startup": [None, None], "gpu_hours_queued": [0.5, None]}
    costs = pl.DataFrame(hours, schema=dict.fromkeys(hours, pl.Float64))
    assert list_texts.idle_title(costs) == "GPU-hours: 3.5 idle, 0.500 in the queue"
    assert list_texts.idle_title(costs.clear()) == ""


def test_a_configuration_cut_short_says_what_it_needs() -> None:
    row = {"model": "8B", "layout": "DP8", "source_path": "/logs/a.out", "last_step": 600, "steps_planned": 1000}
    row |= {"duration_s": 7200.0, "needed_s": 12_000.0}
    assert list_texts.cut_short_line(row) == ("8B · DP8", "step 600 of 1,000 in 2.0 h; all of them need about 3.3 h")
    bare = row | {"model": None, "layout": None, "steps_planned": None, "duration_s": None, "needed_s": None}
    assert list_texts.cut_short_line(bare) == ("/logs/a.out", "step 600")
    assert list_texts.cut_short_line(row | {"last_step": None})[1] == "no step before the time limit"


def test_a_crash_for_lack_of_host_memory_is_named() -> None:
    judged = totals(runs_judged=20, runs_failed=8)
    crashes = {"outcome": "crash", "runs": 8, "gpu_hours": None, "runs_without_gpu_hours": 8}
    assert "all of them crashed." in texts.answer(judged, [crashes], [])
    assert "all of them crashed or ran out of host memory." in texts.answer(
        judged, [{**crashes, "runs_host_oom": 1}], []
    )
    assert "all of them ran out of host memory." in texts.answer(judged, [{**crashes, "runs_host_oom": 8}], [])


def test_the_answer_does_not_claim_more_than_the_rows_show() -> None:
    text = texts.answer(totals(gpu_hours=None), ENDINGS, [pattern(is_above=False), pattern(is_above=False)])
    assert "No single setting fails clearly more often than the rest." in text
    assert "no run logged both its duration and its number of GPUs" in text
    assert "none of them logged both its duration and its number of GPUs" in texts.answer(
        totals(gpu_hours_lost=None), ENDINGS, []
    )
    assert "all of them hung" in texts.answer(totals(), [ending("hang", 4)], [])
    assert "; 1 of them was ended by a node" in texts.answer(totals(), [ending("infra", 1)], [])
    one = texts.answer(totals(runs_judged=2, runs_failed=1), [ending("infra", 1)], [])
    assert one.replace(_NBSP, " ").startswith(
        "**1 of 2 runs failed (50 %)**: it was ended by a node, the network or preemption."
    )


@pytest.mark.parametrize(
    ("changes", "text"),
    [
        ({"runs_judged": 0, "runs_failed": 0, "runs_tried": 2}, "**No run can be judged yet:** 2 runs tried"),
        ({"runs_judged": 1, "runs_failed": 0, "gpu_hours": 2.0}, "**The only run completed.** It took 2.0 GPU-hours."),
        ({"runs_judged": 9, "runs_failed": 0, "gpu_hours": None}, "**All 9 runs that ended completed.**"),
    ],
)
def test_a_sweep_without_failures_says_so(changes: Row, text: str) -> None:
    assert texts.answer(totals(**changes), [], []).startswith(text)


def test_unknown_costs_are_named_not_zero() -> None:
    search = {
        "gpu_hours_until_winner": None,
        "gpu_hours_of_cells_in_order": None,
        "cells_in_order": 0,
        "cells_answered": 2,
    }
    figures = texts.figures(totals(gpu_hours=None, gpu_hours_lost=None), search, None)
    assert [value for _, value, _ in figures][1:] == ["unknown", "unknown", "unknown"]
    assert figures[3][2] == "the order of the runs is not known"


def test_a_price_turns_hours_into_dollars() -> None:
    search = {
        "gpu_hours_until_winner": 30.0,
        "gpu_hours_of_cells_in_order": 40.0,
        "cells_in_order": 2,
        "cells_answered": 3,
    }
    notes = [note.replace(_NBSP, " ") for _, _, note in texts.figures(totals(), search, 2.5)]
    assert notes[1] == "$125; unknown for 2 of 13 runs"
    assert notes[2] == "$31; unknown for 1 of 4 runs"
    assert notes[3] == "$75; 75 % of 40.0 in 2 of 3 cells"


def test_prices_of_accelerators_give_what_hours_cost() -> None:
    search = {
        "gpu_hours_until_winner": 30.0,
        "gpu_hours_of_cells_in_order": 40.0,
        "cells_in_order": 2,
        "cells_answered": 3,
    }
    all_priced = totals(usd=100.0, usd_lost=25.0, gpu_hours_priced=50.0)
    notes = [note.replace(_NBSP, " ") for _, _, note in texts.figures(all_priced, search, None)]
    assert [note.partition(";")[0] for note in notes[1:]] == ["$100.00", "$25.00", "$60"]
    some = totals(usd=40.0, usd_lost=25.0, gpu_hours_priced=20.0)
    notes = [note.replace(_NBSP, " ") for _, _, note in texts.figures(some, search, None)]
    assert notes[1].startswith("$40.00 for the 40 % with a price;")
    assert "$" not in notes[3]  # what the search took has no price of its own
    assert texts.figures(some, search, 2.0)[1][2].startswith("$100;")  # the price on the page counts first


def test_a_stretched_run_says_how_much_and_where() -> None:
    row = {
        "model": "8B",
        "layout": "DP8",
        "duration_s": 7200.0,
        "usual_duration_s": 630.0,
        "stretch_cause": "outside_of_steps",
    }
    assert list_texts.stretched_line(row) == ("8B · DP8", "2.0 h instead of 10.5 min; time outside of its steps")


def test_stars_of_a_log_line_do_not_become_bold() -> None:
    assert list_texts.wording("error: *** STEP # CANCELLED ***") == "error:  STEP # CANCELLED"


def test_logs_that_just_stop_count_as_failed_and_the_page_says_what_they_weigh() -> None:
    rows = [ending("unexplained", 3), ending("oom", 1)]
    cut_off = totals(runs_cut_off=3)
    assert "; 3 of them are logs that stop without a reason." in texts.answer(cut_off, rows, [])
    assert "; 3 of them ended without a logged reason." in texts.answer(totals(runs_cut_off=1), rows, [])
    note = texts.figures(cut_off, NO_SEARCH, None)[0][2].replace(_NBSP, " ")
    assert note == "95 % interval 17 % to 69 %; 14 % without 3 logs that just stop"
    only = totals(runs_judged=1, runs_failed=1, runs_cut_off=1)
    assert ": its log stops without a reason." in texts.answer(only, [ending("unexplained", 1)], [])
    assert "without" not in texts.figures(only, NO_SEARCH, None)[0][2]


def test_a_small_part_of_the_cost_does_not_read_as_none() -> None:
    text = texts.answer(totals(gpu_hours=5000.0, gpu_hours_lost=0.5), ENDINGS, []).replace("\xa0", " ")
    assert "GPU-hours (under 1 %)." in text
