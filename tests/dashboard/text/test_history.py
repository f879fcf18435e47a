"""Lines on who led when, and on what new versions changed."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from sweepscope.dashboard.text import history

Row = dict[str, Any]


def led(**changes: Any) -> Row:
    return {
        "layout": "DP8",
        "framework": "nanotron",
        "framework_version": None,
        "torch_version": None,
        "nccl_version": None,
        "cluster": None,
        "tokens_per_s_per_gpu": 40_000.0,
        "led_from": datetime(2026, 11, 2, 8, 0),
        "margin": 0.021,
        "is_tie": False,
    } | changes


def test_a_leader_is_named_with_what_tells_it_from_the_others() -> None:
    rows = [led(torch_version="2.9"), led(torch_version="2.8", margin=None)]
    assert history.leads_title(rows) == "the lead changed 1 time"
    what, how = history.lead_line(rows[0], rows)
    assert what == "DP8 · torch 2.9"
    assert how.replace("\xa0", " ") == "40,000 tokens/s/GPU, 2.1 % ahead, from 2 Nov 2026 08:00"
    assert history.lead_line(rows[1], rows)[1].endswith("first on 2 Nov 2026 08:00")
    assert "ahead, within the noise" in history.lead_line(led(is_tie=True), [led()])[1]


def test_a_change_names_both_versions_and_its_noise() -> None:
    row = led(
        framework_version="2.0", framework_version_before="1.0", torch_version_before=None, nccl_version_before=None
    )
    row |= {"change": -0.1, "change_verdict": "slower", "noise": 0.014, "repeats": 1, "repeats_before": 3}
    what, how = history.change_line(row)
    assert what == "DP8: version 1.0 → version 2.0"
    assert how.replace("\xa0", " ") == "−10.0 %, regression (noise 1.4 %, 3 and 1 run)"
    assert history.changes_title([row, row | {"change_verdict": "noise"}]) == "1 slower, 1 within the noise"
