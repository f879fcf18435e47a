"""The sentences of a run's page."""

from __future__ import annotations

from typing import Any

import pytest

from sweepscope.dashboard.format.implementation import IMPLEMENTATION
from sweepscope.dashboard.text import run as texts
from sweepscope.dashboard.text import run_sections, run_steps
from sweepscope.schemas.tables.runs import RUNS
from sweepscope.schemas.vocab import STATUS
from tests.dashboard.store_rows import event_row, run_row


def full_run(**changes: Any) -> dict[str, Any]:
    columns = dict.fromkeys(RUNS.column_names)
    oom_columns = {"oom_capacity_bytes": None, "oom_reserved_bytes": None}
    return {**columns, **run_row(), "memory_bytes": 206_158_430_208, "memory_label": "192 GB", **oom_columns, **changes}


def plain(text: str) -> str:
    return text.replace("\xa0", " ")


def answer(evidence: list[dict[str, Any]] | None = None, last_line: int | None = None, **changes: Any) -> str:
    return plain(texts.answer(full_run(**changes), evidence or [], last_line))


def test_a_completed_run_says_how_far_and_how_fast() -> None:
    assert answer() == "**Completed all 10 steps** at 2.93 s a step and 21.6 % MFU."


def test_trouble_after_the_last_step_is_told_and_does_not_undo_it() -> None:
    lines = [event_row(kind="exception", line_no=95), event_row(kind="exit_code", line_no=99), event_row(line_no=98)]
    assert answer(lines, 90).endswith("The log also holds an exception and an exit code, but after the last step.")


def test_trouble_before_the_last_step_is_not_told_as_afterwards() -> None:
    assert "also holds" not in answer([event_row(kind="exception", line_no=5)], 90)


@pytest.mark.parametrize("status", STATUS)
def test_every_status_has_a_sentence(status: str) -> None:
    said = answer(status=status, mfu=None, step_time_s=None, tokens_per_s_per_gpu=None)
    assert said.startswith("**")
    assert said.endswith(".")


def test_only_a_completed_run_is_called_completed() -> None:
    assert not any("ompleted" in answer(status=status) for status in STATUS if status != "completed")


def test_a_failed_run_says_where_it_stopped() -> None:
    common = {"status": "oom", "mfu": None, "step_time_s": None, "tokens_per_s_per_gpu": None}
    assert answer(**common, last_step=3) == "**Ran out of GPU memory** after step 3 of 10."
    assert answer(**common, last_step=None) == "**Ran out of GPU memory** before its first logged step."
    assert answer(status="hang", last_step=3) == (
        "**Hung in a collective** after step 3 of 10, at 2.93 s a step and 21.6 % MFU until then."
    )
    assert answer(status="hang", status_confidence="low", last_step=3).startswith("**Went silent and probably hung**")


@pytest.mark.parametrize(
    ("basis", "stopped", "axis"),
    [
        ("step", "after step 3 of 10", "Step"),
        ("epoch", "after about step 3 of 10", "Step, from rounded epochs"),
        ("batch", "after batch 3", "Batch"),
        ("ordinal", "after logged value 3, of an unknown step", "Logged value; its step is unknown"),
    ],
)
def test_numbers_of_steps_are_called_what_they_count(basis: str, stopped: str, axis: str) -> None:
    common = {"status": "oom", "mfu": None, "step_time_s": None, "tokens_per_s_per_gpu": None, "step_basis": basis}
    assert answer(**common, last_step=3) == f"**Ran out of GPU memory** {stopped}."
    assert run_steps.axis(full_run(**common)) == axis
    assert bool(run_steps.step_note(full_run(**common))) == (basis != "step")


def test_a_run_whose_numbers_are_no_steps_did_not_complete_all_of_them() -> None:
    assert answer(step_basis="ordinal").startswith("**Completed** at 2.93 s a step")


def test_a_mean_is_not_called_a_median() -> None:
    assert "mean over the whole training" in plain(texts.conditions(full_run(step_time_basis="whole_run")))
    assert texts.figures(full_run(step_time_basis="whole_run"))[1][2] == "mean over the whole training"


def test_a_health_finding_comes_before_the_quarantine() -> None:
    lines = [event_row(kind="slowdown", text="from step 6 on a step takes 9 s", line_no=60)]
    assert answer(lines, 90, quarantine_reason="a trial").endswith(
        " From step 6 on a step takes 9 s. Kept out of every ranking: a trial."
    )


def test_a_published_row_is_not_said_to_have_logged_steps() -> None:
    published = {"origin": "published", "steps_logged": None, "last_step": None, "steps_planned": None}
    assert answer(**published) == "**Published as completed** at 2.93 s a step and 21.6 % MFU."
    said = answer(**published, status="failed", mfu=None, step_time_s=None, tokens_per_s_per_gpu=None)
    assert said == "**Failed; its source gives no reason**."


def test_a_quarantined_run_says_why_it_is_not_ranked() -> None:
    assert answer(quarantine_reason="above the peak").endswith("Kept out of every ranking: above the peak.")


def test_titles_name_what_is_known() -> None:
    assert texts.title(full_run()) == "Llama 8B · 16 × MI300X"
    assert texts.title(full_run(model=None, num_gpus=None, accelerator=None)) == "Model unknown"


def test_figures_never_show_a_missing_value_as_zero() -> None:
    unknown = ("mfu", "tokens_per_s_per_gpu", "model_tflops_per_gpu", "mem_peak_allocated_bytes")
    missing = full_run(
        **dict.fromkeys(unknown), mem_peak_reserved_bytes=None, mfu_basis="not computed: accelerator unknown"
    )
    assert [(value, note) for _, value, note in texts.figures(missing)] == [
        ("–", "not computed: accelerator unknown"),
        ("–", "not logged"),
        ("–", "not logged"),
        ("–", "not logged"),
    ]


def test_a_printed_mfu_that_differs_stands_beside_the_recomputed_one() -> None:
    assert "printed as 34.0 %" in plain(texts.figures(full_run(mfu_logged=0.34))[0][2])
    assert "printed" not in texts.figures(full_run(mfu_logged=0.2161))[0][2]


def test_reserved_memory_stands_in_where_allocated_was_not_logged() -> None:
    label, value, _ = texts.figures(full_run(mem_peak_allocated_bytes=None))[3]
    assert (label, plain(value)) == ("Peak reserved", "133.1 GiB")


def test_memory_is_set_beside_the_card_that_the_out_of_memory_line_names() -> None:
    no_peak = {"mem_peak_allocated_bytes": None, "mem_peak_reserved_bytes": None, "memory_bytes": None}
    oom = full_run(**no_peak, oom_capacity_bytes=80 * 2**30, oom_reserved_bytes=32 * 2**30)
    assert tuple(map(plain, texts.figures(oom)[3])) == (
        "Reserved when it failed",
        "32.0 GiB",
        "of 80.0 GiB, by its out-of-memory line",
    )
    assert [(name, share) for name, _, share in run_sections.memory_tracks(oom)] == [("Reserved when it failed", 0.4)]
    assert plain(run_sections.memory_qualifier(oom)) == "track = 80.0 GiB, by its out-of-memory line"
    no_sizes = texts.figures(full_run(**no_peak, oom_capacity_bytes=8 * 2**30))[3]
    assert plain(no_sizes[2]) == "not logged; the card has 8.0 GiB, by its out-of-memory line"
    assert plain(texts.figures(full_run())[3][2]) == "of 192.0 GiB that the card can allocate"
    assert texts.figures(full_run(memory_bytes=None))[3][2] == "the card's memory is unknown"


def test_ranks_that_say_the_same_are_folded_and_the_deciding_kind_comes_first() -> None:
    lines = [
        event_row(kind="launch", line_no=1, text="torchrun"),
        event_row(kind="traceback", line_no=2, text="Traceback (most recent call last):"),
        event_row(kind="oom", line_no=3, text="CUDA out of memory on GPU 0"),
        event_row(kind="exception", line_no=3, text="CUDA out of memory on GPU 0"),
        event_row(kind="oom", line_no=4, text="CUDA out of memory on GPU 1"),
        event_row(kind="exit_code", line_no=5, text="exit code 1"),
    ]
    shown = run_sections.deciding_lines(lines, "oom", 2)
    assert [(row["line_no"], more) for row, more in shown] == [(3, 1), (5, 0)]
    everything = run_sections.deciding_lines(lines, "oom", 9)
    assert [row["line_no"] for row, _ in everything] == [1, 2, 3, 5]


def test_evidence_is_named_by_its_line_where_that_is_shown() -> None:
    run = full_run(status_evidence="CUDA out of memory")
    shown = [event_row(line_no=1_369, text="RuntimeError: CUDA out of memory. Tried")]
    assert texts.evidence_line(run, shown) == "confidence high · line 1,369 decides"
    assert texts.evidence_line(run, []) == "confidence high · CUDA out of memory"


def test_conditions_leave_unknown_parts_out() -> None:
    bare = full_run(sweep=None, run_dir=None, layout=None, seq_len=None, precision=None, step_time_s=None)
    assert texts.conditions(bare) == "train.out · megatron"
    assert texts.conditions(full_run()).endswith("median of 8 steps, 2 warm-up steps dropped")


def test_names_tell_runs_of_one_directory_apart() -> None:
    loose = full_run(run_dir="/logs/rocm", source_path="/logs/rocm/job7.out")
    assert texts.short_name(loose) == "job7.out"
    assert texts.short_name(full_run(attempt=2)) == "a1, attempt 2"
    published = full_run(origin="published", source_path="data/published/x.csv", line_no=1_204)
    assert texts.short_name(published) == "x.csv, line 1,204"


def test_place_says_rank_and_distance() -> None:
    same = dict.fromkeys(name for column in IMPLEMENTATION for name in (column, f"winner_{column}"))
    row = {**same, "rank_in_cell": 3, "layouts_completed": 12, "winner_lead": 0.25, "winner_layout": "DP4"}
    assert plain(texts.rank_text(row)) == ("Rank 3 of 12 completed layouts in its cell; DP4 is 25.0 % faster than it")
    other = {"framework_version": "1.0", "winner_framework_version": "2.0"}
    assert plain(texts.rank_text({**row, **other})).endswith("; DP4 in version 2.0 is 25.0 % faster than it")
    assert texts.rank_text({**row, "rank_in_cell": 1}) == "**Fastest of 12 completed layouts** in its cell"
    assert texts.rank_text({**row, "layouts_completed": 1}) == "**Only completed layout** of its cell"
