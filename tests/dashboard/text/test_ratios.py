"""Lines on the ratios that decide: their thresholds in words, and what is unknown left out."""

from __future__ import annotations

import re
from typing import Any

from sweepscope.dashboard.text import ratios as texts
from sweepscope.pipeline.estimate.advice.overlap_checklist import checklist

NONE = dict.fromkeys(
    [f"est_{kind}_{name}_s" for kind in ("comm", "time") for name in ("tp", "cp", "ep", "dp", "pp")], 0.0
)
VALUES: dict[str, Any] = {
    **NONE,
    "est_comm_tp_s": 0.5,
    "est_time_tp_s": 0.25,
    "est_comm_dp_s": 1.5,
    "est_time_dp_s": 0.5,
    "est_rho_tp": 0.8,
    "est_compute_per_comm": 4.0,
    "est_flops_per_comm_byte": 12_345.6,
    "est_bubble_fraction": 0.125,
    "est_dp_per_pass": 1.25,
    "est_pp_break_even_gas": 12.0,
    "est_mfu": 0.4,
    "est_mfu_overlapped": 0.5,
    "num_channels": 33,
    "processors": 132,
    "nccl_processor_share": 0.25,
}


def plain(rows: list[tuple[str, str]]) -> dict[str, str]:
    return {name: value.replace("\xa0", " ") for name, value in rows}


def test_communication_adds_up_and_leaves_out_what_is_not_there() -> None:
    assert plain(texts.communication(VALUES)) == {
        "Communication per step": "~2.00 s, of which ~0.750 s exposed",
        "TP": "~0.500 s, of which ~0.250 s exposed",
        "DP": "~1.50 s, of which ~0.500 s exposed",
    }
    assert texts.communication({**VALUES, **NONE}) == [("Communication", "none")]


def test_each_ratio_says_what_its_threshold_says() -> None:
    assert plain(texts.deciding(VALUES, 8)) == {
        "Compute over communication": "~4.0 ×, below the rule of thumb of 10",
        "Compute over TP communication": "~0.8 ×, TP communicates longer than it computes",
        "DP communication over overlappable compute": "~1.25 ×, too long to be hidden",
        "FLOPs per byte sent": "~12,346",
        "Pipeline bubble": "~12.5 % of the step",
        "Twice the stages pay off": "from ~12 micro-batches; it has 8",
        "If overlap were perfect": "~50.0 % MFU instead of ~40.0 %",
    }


def test_a_layout_without_exchanges_has_no_ratios_of_them() -> None:
    none = dict.fromkeys([name for name in VALUES if name not in NONE])
    assert texts.deciding({**NONE, **none, "est_bubble_fraction": 0.0}, None) == [("Pipeline bubble", "none")]
    assert not texts.has_ratios({})
    assert texts.has_ratios(VALUES)


def test_what_nccl_takes_is_said_where_it_is_known() -> None:
    assert plain(texts.contention(VALUES)) == {
        "SMs that NCCL takes": "33 of 132, one per channel: compute beside it has 75 % of the peak"
    }
    assert texts.contention({**VALUES, "num_channels": None}) == []


def test_a_run_faster_than_its_estimate_says_that_figures_are_slow() -> None:
    assert texts.beaten(2.0, 3.0).startswith("The run is 50")
    assert texts.beaten(3.0, 3.0) == texts.beaten(None, 3.0) == texts.beaten(3.0, None) == ""


def test_the_checklist_is_counted() -> None:
    items = checklist({"dp": 8, "pp": 4, "gas": 4, "precision": "bf16", "recompute": "full"})
    assert texts.checklist_qualifier(items) == "2 of 5 hold, 1 does not, 2 not stated"
    single = checklist({"dp": 1, "pp": 1, "gas": 4, "precision": "fp32", "recompute": "none"})
    assert sum(map(int, re.findall(r"(\d+) (?:of|do|does|not)", texts.checklist_qualifier(single)))) == len(single)
    assert "not needed" in texts.checklist_qualifier(single)
    assert texts.checked(items[2]) == "✕ does not hold · 4 micro-batches on 4 stages"
