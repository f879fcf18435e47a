"""The sentences of Frontier, Runs, SQL and Data health."""

from __future__ import annotations

from typing import Any

import pytest

from sweepscope.dashboard.sandbox.run_query import Limits
from sweepscope.dashboard.text import frontier, health, runs, sql
from sweepscope.dashboard.view_models.frontier import Dot, Kind


def dot(kind: Kind, mfu: float | None, num_gpus: int | None = 8) -> Dot:
    return Dot(
        run_id="a",
        name="Llama",
        hardware="H100",
        kind=kind,
        mfu=mfu,
        hfu=None if mfu else 0.5,
        reason=None,
        num_gpus=num_gpus,
    )


def plain(text: str) -> str:
    return text.replace("\xa0", " ")


def test_frontier_ranks_among_comparable_rows_only() -> None:
    shown = [
        dot("own", 0.187, 512),
        dot("comparable", 0.41, 16_384),
        dot("own", 0.452, 8),
        dot("other", 0.47, 99),
        dot("comparable", 0.5, 384),
    ]
    assert plain(frontier.answer(shown, "measured")) == (
        "The best run in this store, **45.2 % MFU on 8 GPUs**, would rank 2 of 3 among comparable published runs. "
        "They used 384 to 16,384 GPUs; at **512 GPUs the best here is 18.7 %.**"
    )


def test_frontier_says_whose_best_it_is() -> None:
    shown = [dot("own", 0.4), dot("comparable", 0.3)]
    assert frontier.answer(shown, "published").startswith("The best run of the published sweeps,")
    assert frontier.answer(shown, "simulated").startswith("The best simulated run,")


@pytest.mark.parametrize(
    ("dots", "start"),
    [
        ([], "**No published configuration is in this store.**"),
        ([dot("own", 0.4)], "**No published configuration is in this store.**"),
        ([dot("comparable", 0.4), dot("comparable", 0.3)], "**2 comparable published runs** reach 30.0 % to 40.0 %"),
        ([dot("other", 0.4)], "No row on screen has a comparable MFU."),
    ],
)
def test_frontier_without_one_side_says_so(dots: list[Dot], start: str) -> None:
    assert plain(frontier.answer(dots, "measured")).startswith(start)


@pytest.mark.parametrize(
    ("mfu", "basis", "comparability", "note"),
    [
        (0.4, "6N + 12Lhs; peak 989", None, None),
        (0.4, "6N + 12Lhs; peak 989", "HFU, counts recomputation", None),
        (0.662, "6N + 12Lhs; peak 312", "model has sliding-window attention", "not comparable"),
        (0.3, "6N, attention left out; peak 989", None, "attention not counted"),
        (1.5, "6N + 12Lhs; peak 989", None, "above the peak"),
        (None, "not computed: accelerator unknown", None, "accelerator unknown"),
        (None, None, None, None),
    ],
)
def test_runs_say_what_keeps_an_mfu_from_being_compared(
    mfu: float | None, basis: str | None, comparability: str | None, note: str | None
) -> None:
    assert runs.mfu_note({"mfu": mfu, "mfu_basis": basis, "comparability": comparability}) == note


def test_frontier_names_what_it_does_not_draw() -> None:
    assert frontier.left_out(0, 0) == ""
    assert frontier.left_out(1, 23) == (
        "Not drawn: 23 further rows of the same models: choose All rows; "
        "1 configuration without a published MFU or HFU: only in the table."
    )


def counted(count: int, completed: int, running: int = 0) -> dict[str, int]:
    return {"runs": count, "completed": completed, "running": running}


@pytest.mark.parametrize(
    ("matching", "everything", "is_narrowed", "said"),
    [
        (counted(0, 0), counted(0, 0), False, "**This store has no runs.**"),
        (counted(0, 0), counted(9, 5), True, "**No run matches.**"),
        (counted(9, 5), counted(9, 5), False, "**5 of 9 runs completed.**"),
        (counted(9, 5, 1), counted(9, 5, 1), False, "**5 of 9 runs completed.** 1 still running."),
        (counted(1, 0), counted(9, 5), True, "**1 of 9 runs matches**; it did not complete."),
        (counted(3, 2), counted(4122, 5), True, "**3 of 4,122 runs match**; 2 of them completed."),
    ],
)
def test_runs_counts_what_is_listed(
    matching: dict[str, int], everything: dict[str, int], is_narrowed: bool, said: str
) -> None:
    assert runs.answer(matching, everything, is_narrowed=is_narrowed).startswith(said)


def test_runs_names_its_rows_and_the_repeats_it_leaves_out() -> None:
    assert runs.page_line(offset=100, shown=30, runs=130, duplicates=1) == (
        "Rows 101 to 130 of 130. 1 duplicate of listed runs left out."
    )
    assert runs.page_line(offset=0, shown=0, runs=0, duplicates=0) == ""


def test_sql_says_how_much_came_back() -> None:
    assert sql.result_line(1, 0.0124, is_truncated=False) == "**1 row** in 12 ms."
    assert plain(sql.result_line(50_000, 2.5, is_truncated=True)).startswith("**The first 50,000 rows**, in 2.50 s.")
    assert plain(sql.progress(2, 0.0, 4, Limits())).startswith("**Waiting, number 2 in the queue.** 4 queries of other")
    assert sql.progress(0, 3.4, 4, Limits()) == "**Running** for 3 s of at most 20 s."
    assert "at most 20 seconds" in sql.answer(15, 4_122, Limits())


def summary(**changes: int) -> dict[str, int]:
    return {"files": 9, "parsed": 8, "skipped": 1, "rejected": 0, "lines_rejected": 0, **changes}


@pytest.mark.parametrize(
    ("row", "said"),
    [
        (summary(files=0, parsed=0, skipped=0), "**No file was read yet.**"),
        (
            summary(),
            "**8 of 8 files were read to their end.** 1 more holds nothing that a parser knows. Nothing was rejected.",
        ),
        (summary(skipped=0, files=8), "**8 of 8 files were read to their end.** Nothing was rejected."),
        (
            summary(parsed=6, rejected=2, lines_rejected=11, skipped=0, files=8),
            "**6 of 8 files were read to their end.** 2 files could not be read and 11 lines or rows went to rejects",
        ),
        (summary(files=1, parsed=1, skipped=0), "**The one file was read to its end.**"),
    ],
)
def test_health_says_how_much_could_be_read(row: dict[str, int], said: str) -> None:
    assert health.answer(row).startswith(said)


@pytest.mark.parametrize(
    ("row", "has_advice"),
    [
        ({"status": "parsed", "lines_rejected": 0}, False),
        ({"status": "parsed", "lines_rejected": 3}, True),
        ({"status": "parsed", "lines_rejected": 0, "secrets_hidden": 2}, True),
        ({"status": "skipped", "lines_rejected": 0}, True),
        ({"status": "rejected", "lines_rejected": 0}, True),
    ],
)
def test_health_advises_where_there_is_something_to_do(row: dict[str, Any], has_advice: bool) -> None:
    assert bool(health.file_remedy(row)) is has_advice


@pytest.mark.parametrize(
    "reason",
    [
        "looks like a metric line but did not parse",
        "the value was left out: it does not fit the type or range of its column",
        "cannot be read as Int64",
        "repeats the key of an earlier row (run_id, step)",
        "must be at least 1",
        "a line of over 16 MiB was cut",
        "first_step comes after last_step",
    ],
)
def test_every_reason_of_a_reject_tells_what_is_lost_and_what_to_do(reason: str) -> None:
    consequence, _, remedy = health.reject_remedy(reason, "steps").partition(". ")
    assert consequence
    assert remedy.endswith(".")
