"""Sentences of the estimator's page."""

from __future__ import annotations

from typing import Any

from sweepscope.dashboard.text import estimator as texts
from sweepscope.dashboard.text import estimator_run as run_texts
from sweepscope.dashboard.view_models.estimator import Loss

Row = dict[str, Any]


def totals(**changes: Any) -> Row:
    return {
        "runs": 10,
        "penalised": 4,
        "time_error": 0.21,
        "healthy_time_error": 0.04,
        "penalised_ratio": 5.12,
        "mem_runs": 7,
        "mem_error": 0.06,
    } | changes


def pattern(name: str, penalised: int, *, ratio: float = 3.1, runs: int = 6) -> Row:
    return {"pattern": name, "runs": runs, "penalised": penalised, "time_ratio": ratio}


def said(found: Row, *patterns: Row) -> str:
    return texts.answer(found, patterns).replace("\xa0", " ")


def test_the_answer_says_error_penalty_and_where() -> None:
    assert said(totals(), pattern("PP over nodes · ZeRO-0", 2), pattern("PP over nodes · ZeRO-1", 1)) == (
        "**Median error of estimated step time: 21 % over 10 runs**, 4 % over the 6 within 1.5 × of the estimate. "
        "**4 (40 %) are slower than their hardware allows, 5.1 × at the median**; 75 % of them have PP over nodes."
    )


def test_without_a_common_cause_the_slowest_pattern_is_named() -> None:
    assert said(totals(), pattern("TP in a node", 2), pattern("DP only", 2)).endswith("; worst is TP in a node, 3.1 ×.")
    few = pattern("TP in a node", 2, runs=2)
    assert said(totals(), few, pattern("DP only", 2, ratio=1.1)).endswith("5.1 × at the median**.")


def test_the_answer_when_all_or_none_are_slow() -> None:
    assert said(totals(runs=3, penalised=0)).endswith("over 3 runs**. None is more than 1.5 × slower than estimated.")
    assert "within" not in said(totals(runs=4), pattern("DP only", 4))
    assert said(totals(runs=4), pattern("DP only", 4)).endswith("; all of them have DP only.")
    one = said(totals(penalised=1), pattern("DP only · ZeRO-1", 1))
    assert one.endswith("**1 (10 %) is slower than its hardware allows, 5.1 ×**: DP only.")
    assert said(totals(runs=0)) == texts.NOT_ESTIMATED


def test_meta_says_what_was_fitted_on_what() -> None:
    assert texts.meta({"fitted": 2, "not fitted": 1}, [0.45, 0.013], None, 3).replace("\xa0", " ") == (
        "3 sweeps · 2 runs of studies that the constants were fitted on · 1 run with published constants, not fitted · "
        "median error on rows left out, learned penalty included: 1 % to 45 %"
    )
    assert texts.meta({"other study": 1}, [0.02], "mine", 1).replace("\xa0", " ") == (
        "sweep mine · 1 run of other studies · median error on rows left out, learned penalty included: 2 %"
    )
    assert "left out" not in texts.meta({"not fitted": 1}, [], "mine", 1)


def test_reasons_alike_stand_together_and_single_ones_in_full() -> None:
    rows = [
        {"fate": "compared", "reason": None, "runs": 9},
        {"fate": "not estimated", "reason": "shape unknown: num_heads not stated", "runs": 2},
        {"fate": "not estimated", "reason": "shape unknown: num_layers not stated", "runs": 3},
        {"fate": "not estimated", "reason": "unknown accelerator: CPU (add it)", "runs": 1},
        {"fate": "not measured", "reason": "no step time", "runs": 7},
    ]
    lines = texts.reasons(rows)
    assert [text.split(".")[0] for text, _ in lines] == [
        "Estimated, but no step time was logged",
        "Shape unknown",
        "Unknown accelerator: CPU (add it)",
    ]
    assert [runs for _, runs in lines] == ["7 runs", "5 runs", "1 run"]
    assert texts.account(rows) == (
        "22 runs: 9 beside their estimate; 7 estimated, but without a measurement to compare; "
        "6 that cannot be estimated"
    )


def test_an_mfu_by_other_flops_than_the_estimate_counts_is_explained() -> None:
    row = {"mfu": 0.38, "mfu_basis": "6N, attention left out; peak 2250", "est_mfu": 0.5, "time_ratio": 1.25}
    same, other = Loss("Unexplained", 0.1, 0.5), Loss("MFU counted otherwise", 0.02, 0.4)
    assert run_texts.recount(row, [same, other]) == (
        " MFU is by 6N, attention left out here as on every page; the estimate counts other FLOPs: "
        "MFU counted otherwise is the difference."
    )
    assert run_texts.recount({**row, "mfu": 0.4}, [same]) == ""


def test_a_run_without_an_mfu_says_why() -> None:
    row = {"mfu": None, "mfu_basis": "not computed: precision not stated", "est_mfu": 0.5, "time_ratio": 1.25}
    losses = [Loss("Kernels below peak", 0.5, 1.0), Loss("Unexplained", 0.1, 0.5)]
    assert run_texts.recount(row, losses) == " The run has no MFU: precision not stated."
    assert "what is left, 40.0 %" in run_texts.waterfall_alt(row, losses).replace("\xa0", " ")
    assert run_texts.left_name(row) == "Estimate's FLOPs at peak"


def test_assumptions_name_no_columns() -> None:
    text = run_texts.assumed("num_layers, tie_word_embeddings of Qwen3 14B; num_kv_heads = num_heads")
    assert text == " Assumed: layers, tied embeddings of Qwen3 14B; KV heads = heads."
    assert run_texts.assumed(None) == ""


def test_unexplained_is_told_by_its_sign() -> None:
    assert "faster than its estimate" in run_texts.unexplained([Loss("Unexplained", -0.1, 0.3)])
    assert "67\xa0% of the step" in run_texts.unexplained([Loss("Unexplained", 0.668, 0.78)])


def test_names_are_escaped_in_hovers() -> None:
    row = {
        "model": "<b>x</b>",
        "num_nodes": 1,
        "num_gpus": 8,
        "layout": None,
        "pattern": "DP only",
        "step_time_s": 4.0,
        "est_step_time_s": 2.0,
        "time_ratio": 2.0,
        "mfu": 0.2,
        "est_mfu": 0.4,
        "mem_peak_allocated_bytes": None,
        "est_mem_bytes": 1e9,
    }
    values = [part.replace("\xa0", " ") for part in run_texts.hover(row)]
    assert values == [
        "&lt;b&gt;x&lt;/b&gt; on 1 node",
        "DP only",
        "4.00",
        "2.00",
        "2.0",
        "20.0",
        "40.0",
        "peak memory not logged",
    ]
