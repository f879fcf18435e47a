from __future__ import annotations

from typing import Any

import pytest

from sweepscope.dashboard.format.numbers import NBSP
from sweepscope.dashboard.text import compare as texts
from sweepscope.dashboard.text import compare_results
from sweepscope.dashboard.text import compare_sections as section_texts
from sweepscope.dashboard.view_models import compare, compare_losses, compare_speed
from sweepscope.dashboard.view_models.compare import Subject
from tests.dashboard.compare_rows import compared, estimated, failed, subject

FAST = {"run_id": "f", "tokens_per_s_per_gpu": 7689.0, "tp": 8, "dp": 2, "layout": "DP2 TP8 PP1 · GAS2 MBS5 · Z1"}


def sentence_on(
    *columns: Subject,
    repeats: dict[str, Any] | None = None,
    explained: compare_losses.Difference | None = None,
) -> str:
    race = compare_speed.judged(compare_speed.race(columns), repeats)
    differing = [
        line for lines in compare.configuration_lines(columns).values() for line in compare.folded(lines).shown
    ]
    return texts.answer(race, columns, explained, differing).replace(NBSP, " ")


def noise(value: float, *, chance: float = 0.9, is_same: bool = False) -> dict[str, Any]:
    return {"repeats": 1, "other_repeats": 1, "noise": value, "chance": chance, "is_same": is_same}


def pair() -> tuple[Subject, Subject]:
    return subject("A", compared()), subject("B", compared(**FAST))


def test_the_faster_run_is_named_with_lead_and_noise() -> None:
    text = sentence_on(*pair(), repeats=noise(0.01))
    assert text.startswith(
        "**B is 10.0 % faster than A**, more than the noise (1.0 %; chance that B is the faster: 90 %)."
    )


def test_a_lead_within_the_noise_is_told_with_its_chance() -> None:
    text = sentence_on(*pair(), repeats=noise(0.12, chance=0.66))
    assert text.startswith("**B is 10.0 % ahead of A, within the noise** (12.0 %; chance that B is the faster: 66 %).")


def test_a_fast_repeat_of_the_runner_up_does_not_hide_who_leads_over_all() -> None:
    repeats = {**noise(0.12, chance=0.66), "repeats": 2, "median": 6900.0, "other_median": 6990.0}
    text = sentence_on(*pair(), repeats=repeats)
    assert text.startswith("**B is 10.0 % ahead of A, within the noise**")
    assert "**Over all repeats A's layout leads:** 6,990 to 6,900 tokens/s/GPU in the median (1 and 2 runs)." in text
    assert "Over all repeats" not in sentence_on(*pair(), repeats={**repeats, "median": 7000.0})
    assert "Over all repeats" not in sentence_on(*pair(), repeats={**repeats, "median": None})


def test_of_an_unknown_noise_nothing_is_claimed() -> None:
    assert "how much repeats would differ is unknown" in sentence_on(*pair())


def test_two_runs_of_one_configuration_are_repeats_and_no_race() -> None:
    text = sentence_on(
        subject("A", compared()),
        subject("B", compared("b", tokens_per_s_per_gpu=7100.0)),
        repeats=noise(0.03, is_same=True),
    )
    assert text == "**B and A ran one configuration** and are 1.6 % apart: that is noise, not a lead."


def test_twice_as_fast_is_told_in_times() -> None:
    assert "3.0 × as fast as A" in sentence_on(
        subject("A", compared()), subject("B", compared("b", tokens_per_s_per_gpu=20_970.0))
    )


def test_what_explains_it_is_saved_and_paid_in_points() -> None:
    parts = {"est_time_dp_s": 0.1, "est_time_tp_s": 0.3, "est_step_time_s": 2.1, "est_mfu": 0.4 * 2 / 2.1}
    explained = compare_losses.difference(estimated("f", **parts, step_time_s=2.2), estimated())
    text = sentence_on(*pair(), repeats=noise(0.01), explained=explained)
    assert "DP2 TP8 saves 4.5 points of DP communication and loses 9.1 to TP communication" in text
    assert text.endswith(f"{100 * explained.unexplained:.1f} are unexplained."), "the estimate does not account for it"


def test_parts_of_an_estimate_that_is_far_off_are_not_named() -> None:
    parts = {"est_time_tp_s": 1.8, "est_step_time_s": 3.6, "est_mfu": 0.4 * 2 / 3.6}
    explained = compare_losses.difference(estimated(), estimated("f", **parts, step_time_s=3.1))
    assert explained.unexplained < -0.4
    text = sentence_on(*pair(), repeats=noise(0.01), explained=explained)
    expected = 100 * (explained.total - explained.unexplained)
    assert text.endswith(
        f"The estimate puts DP2 TP8 {expected:.1f} points ahead; {100 * explained.total:.1f} were measured, so it "
        "does not explain these runs."
    )
    assert "TP communication" not in text


def test_without_an_estimate_the_settings_that_differ_are_named() -> None:
    assert sentence_on(*pair(), repeats=noise(0.01)).endswith("They differ in 2 settings, among them DP, TP.")
    one = subject("A", compared()), subject("B", compared("b", tokens_per_s_per_gpu=9000.0, mbs=6))
    assert sentence_on(*one).endswith("They differ in one setting: MBS, 5 against 6.")


def test_a_run_without_a_speed_is_told_with_the_reason() -> None:
    assert sentence_on(subject("A", failed()), subject("B", compared())) == (
        "**Only B has a speed**, 6,990 tokens/s/GPU: A ran out of GPU memory."
    )
    assert sentence_on(subject("A", failed()), subject("B", failed("o2"))).startswith(
        "**None of these has a speed to compare:**"
    )
    published = compared("p", origin="published", tokens_per_s_per_gpu=None, mfu=None)
    assert "B is published without a speed" in sentence_on(subject("A", failed()), subject("B", published))


def test_of_more_than_two_the_fastest_is_named_with_those_left_behind() -> None:
    text = sentence_on(*pair(), subject("C", compared("c", tokens_per_s_per_gpu=5000.0)), subject("D", failed()))
    assert text.startswith("**B is the fastest of 3** (D ran out of GPU memory), **10.0 % faster than A**")


def test_unlike_sizes_of_the_job_are_said() -> None:
    text = sentence_on(subject("A", compared(num_gpus=64)), subject("B", compared(**FAST)))
    assert "faster than A** at 16 instead of 64 GPUs" in text


def test_other_models_are_compared_in_points_of_their_peak() -> None:
    other = compared(
        "l",
        origin="published",
        model="Llama 3.1 405B",
        params=405_000_000_000,
        mfu=None,
        mfu_logged=0.41,
        num_gpus=16_384,
        comparability="comparable",
    )
    doubtful = compared(
        "d", model="DeepSeek-V3", params=671_000_000_000, mfu=0.224, comparability="derived from GPU-hours"
    )
    text = sentence_on(subject("A", compared()), subject("B", other), subject("C", doubtful))
    assert text.startswith(
        "**Llama 3.1 405B (B) reaches the most, 41.0 % of its peak**; points behind: DeepSeek-V3 (C) by"
    )
    assert "tokens/s do not compare" in text
    assert "The figure of C is not comparable" in text
    silent = compared("s", origin="published", model="Llama 8B", mfu=None, tokens_per_s_per_gpu=None)
    text = sentence_on(subject("A", compared()), subject("B", other), subject("C", silent))
    assert "(C is published without an MFU)" in text
    assert sentence_on(subject("A", compared()), subject("B", other)).startswith(
        "**Llama 3.1 405B (B) reaches 41.0 % of its peak, 19.4 points more than Llama 8B (A)**."
    )


def test_one_model_on_unlike_accelerators_is_told_by_letter_and_an_unstated_one_is_named() -> None:
    other = subject("B", compared("b", accelerator="H100-SXM-80GB", mfu=0.4))
    assert sentence_on(subject("A", compared()), other).startswith(
        "**B reaches 40.0 % of its peak, 18.4 points more than A**."
    )
    unstated = subject("C", compared("c", accelerator=None, mfu=None, mfu_logged=1.02))
    text = sentence_on(subject("A", compared()), subject("B", compared("b", mfu=0.4)), unstated)
    assert "(C has no comparable MFU)" in text
    assert "The accelerator of C is not stated" in text


def test_groups_are_told_with_their_spread() -> None:
    group = subject("A", *(compared(str(speed), tokens_per_s_per_gpu=float(speed)) for speed in (90, 100, 110)))
    text = sentence_on(group, subject("B", compared("b", tokens_per_s_per_gpu=60.0)))
    assert text.startswith("**A is 66.7 % faster than B**, more than the noise (20.0 %)")


def test_names_tell_the_columns_apart_by_what_differs() -> None:
    assert texts.short_names(pair()) == {"A": "DP16 TP1", "B": "DP2 TP8"}
    versions = subject("A", compared(framework_version="1")), subject("B", compared("b", framework_version="2"))
    assert texts.short_names(versions) == {"A": "version 1", "B": "version 2"}
    assert texts.short_names([subject("A", compared()), subject("B", compared("b"))]) == {"A": "A", "B": "B"}


def test_results_leave_out_what_nobody_states_and_give_ranges_of_groups() -> None:
    group = subject("A", compared("a", step_time_s=2.0), compared("b", step_time_s=3.0))
    lines = {line.name: line for line in compare_results.lines([group, subject("B", failed())])}
    assert "hfu" not in lines
    assert lines["step_time_s"].texts[0] is not None
    assert lines["step_time_s"].texts[0].replace(NBSP, " ") == "2.50 s (2.00 s to 3.00 s)"
    assert lines["step_time_s"].texts[1] is None
    assert lines["status"].texts == ("2 ✓ completed", "▲ OOM")


@pytest.mark.parametrize("extra", [None, '{"gpu_hours_per_t_tokens": "180000", "goodput_pct": "unclear"}'])
def test_a_publication_adds_what_only_it_states(extra: str | None) -> None:
    row = compared(comparability="comparable", source_url="https://arxiv.org/abs/2412.19437", extra=extra)
    columns = [subject("A", row), subject("B", compared("b"))]
    lines = {line.name: line.texts[0] for line in compare_results.main(columns, compare_results.lines(columns))}
    assert lines["published_on"] == "2024-12"
    assert lines.get("gpu_hours_per_t_tokens") == ("180,000" if extra else None)
    assert lines.get("goodput_pct") == ("unclear" if extra else None)


def test_the_note_under_the_curves_names_who_has_none() -> None:
    columns = [subject("A", compared()), subject("B", compared("p", origin="published")), subject("C", failed())]
    assert (
        section_texts.curves_note(columns, {"A"}, "loss") == "No curve: C logged no loss; B is published without steps."
    )
    assert section_texts.curves_note(columns, {"A", "B", "C"}, "loss") == ""
