"""Sentences of the Explorer: who should win, what was measured, and why nothing fits."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import polars as pl

from sweepscope.dashboard.text import explorer as texts
from sweepscope.dashboard.text import explorer_layout as layout_texts
from sweepscope.dashboard.view_models import explorer, explorer_layout
from sweepscope.dashboard.view_models.explorer import Setup
from sweepscope.pipeline.estimate.physics.profile import choose_profile
from sweepscope.pipeline.estimate.search.whatif import Choice
from sweepscope.pipeline.reference.layout_text import LAYOUT, full_layout_text
from tests.dashboard.view_models.test_explorer import LLAMA, SETUP

REQUEST = SETUP.request(choose_profile)
FOUND = explorer.found_for(REQUEST)


def run(mfu: float, *, shown: float | None = None) -> dict[str, Any]:
    """A measured run of the question as fast as `mfu` is; `shown` is the MFU of the row where it counts otherwise."""
    best = FOUND.layouts.row(0, named=True)
    return {
        "origin": "measured",
        "num_gpus": 16,
        "seq_len": 8192,
        "gbs_tokens": 16 * 8192,
        "mfu": shown or mfu,
        "tokens_per_s_per_gpu": mfu * best["est_tokens_per_s_per_gpu"] / best["est_mfu"],
        "layout": "DP16 TP1 PP1",
    }


RUN = run(0.41)


def plain(text: str) -> str:
    return text.replace("\xa0", " ")


def test_the_answer_names_the_fastest_layout_and_what_was_reached() -> None:
    text = plain(texts.answer(SETUP, REQUEST, FOUND, pl.DataFrame([RUN, run(0.39)])))
    best = FOUND.layouts.row(0, named=True)
    assert text.startswith(f"On 2 nodes, Llama 3 8B should train fastest with **{full_layout_text(best)}: ~")
    assert text.endswith("The best of 2 measured runs reached 41.0 % with DP16 TP1 PP1.")


def test_an_estimate_below_16_bit_names_the_peak_that_its_mfu_is_of() -> None:
    measured = pl.DataFrame([RUN])
    assert "% MFU of the FP8 peak**" in plain(texts.answer(replace(SETUP, precision="fp8"), REQUEST, FOUND, measured))
    assert "peak" not in plain(texts.answer(SETUP, REQUEST, FOUND, measured))


def test_a_run_that_beats_every_estimate_is_the_answer() -> None:
    best = FOUND.layouts.row(0, named=True)
    fast = run(0.66)
    text = plain(texts.answer(SETUP, REQUEST, FOUND, pl.DataFrame([RUN, fast, RUN])))
    assert text.startswith(
        "On 2 nodes, Llama 3 8B trained fastest with **DP16 TP1 PP1: 66.0 % MFU**, the best of 3 measured runs. "
        f"The estimate ranks {full_layout_text(best)} first: ~"
    )
    same = plain(texts.answer(SETUP, REQUEST, FOUND, pl.DataFrame([fast | {name: best[name] for name in LAYOUT}])))
    assert ", the only measured run. The estimate ranks it first, too: ~" in same


def test_the_fastest_run_is_the_one_with_the_most_throughput() -> None:
    runs = pl.DataFrame([run(0.39, shown=0.42), RUN | {"layout": "DP8 TP2 PP1"}])
    text = plain(texts.answer(SETUP, REQUEST, FOUND, runs))
    assert text.endswith("The best of 2 measured runs reached 41.0 % with DP8 TP2 PP1.")


def test_a_slower_layout_says_by_how_much() -> None:
    fastest = explorer_layout.answer_for(REQUEST, explorer.start_of(REQUEST))
    slower = replace(fastest, mfu=fastest.mfu * 0.9, tokens_per_s_per_gpu=fastest.tokens_per_s_per_gpu * 0.9)
    assert plain(dict(layout_texts.facts(slower, FOUND))["Against the fastest"]) == "10.0 % slower"


def test_runs_of_other_questions_are_counted_and_not_quoted() -> None:
    runs = pl.DataFrame([RUN | {"num_gpus": 64}])
    assert "None of its 1 run in the store had these nodes" in texts.answer(SETUP, REQUEST, FOUND, runs)
    assert "No run of it on this accelerator" in texts.answer(SETUP, REQUEST, FOUND, runs.clear())


def test_nothing_that_fits_says_how_much_is_missing() -> None:
    tight = replace(SETUP, nodes=1, accelerator="V100-SXM-16GB", gbs_tokens=8 * 8192)
    request = tight.request(choose_profile)
    text = plain(texts.answer(tight, request, explorer.found_for(request), pl.DataFrame([RUN]).clear()))
    assert text.startswith("**No layout of Llama 3 8B on 1 node fits**: the leanest of")
    assert "the card has 1" in text


def test_nothing_that_can_be_launched_says_why() -> None:
    odd = Setup("Llama 3 8B", LLAMA, "H100-SXM-80GB", 37, 8191, 8191)
    request = odd.request(choose_profile)
    text = texts.answer(odd, request, explorer.found_for(request), pl.DataFrame([RUN]).clear())
    assert "can be launched** with 1 sequence per step: " in text


def test_the_verdict_tells_room_or_excess() -> None:
    answer = explorer_layout.answer_for(REQUEST, Choice(zero_stage=3))
    full = replace(answer, fits=True, need_bytes=76 * 2**30, card_bytes=80 * 2**30)
    assert plain(layout_texts.verdict(full)[1]) == "**Fits**, ~4.0 GiB to spare · near limit"
    over = replace(answer, fits=False, need_bytes=100 * 2**30, card_bytes=80 * 2**30)
    assert (layout_texts.verdict(over)[0], plain(layout_texts.verdict(over)[1])) == (
        "✕",
        "**Does not fit**: ~20.0 GiB too much",
    )
    assert plain(layout_texts.big_number(over, "physics")[0]) == "~100 GiB"
    assert layout_texts.big_number(over, "physics")[1] == "per GPU, the card has 80.0\xa0GiB"
    assert "Rank by the hardware" not in dict(layout_texts.facts(over, FOUND))


def test_the_rank_of_the_fastest_is_first() -> None:
    answer = explorer_layout.answer_for(REQUEST, explorer.start_of(REQUEST))
    facts = dict(layout_texts.facts(answer, FOUND))
    assert facts["Rank by the hardware"] == f"1 of {FOUND.fitting:,} that fit with room"
    assert facts["Against the fastest"] == "level"


def test_a_learned_penalty_stands_beside_what_the_hardware_allows() -> None:
    found = replace(
        explorer_layout.answer_for(REQUEST, Choice(zero_stage=3)),
        fits=True,
        mfu=0.4,
        penalty=1.25,
        interval=(0.3, 0.35),
        step_time_s=2.0,
        tokens_per_s_per_gpu=5000.0,
    )
    assert plain(layout_texts.big_number(found, "expected")[0]) == "~32.0 %"
    assert plain(layout_texts.big_number(found, "expected")[1]) == "MFU, 30.0 to 35.0 % likely"
    assert plain(layout_texts.big_number(found, "physics")[0]) == "~40.0 %"
    facts = {name: plain(value) for name, value in layout_texts.facts(found, FOUND)}
    assert facts["The hardware allows"] == "~40.0 % MFU"
    assert facts["Typical slowdown"] == "~1.25 ×"
    assert facts["Step, throughput"] == "~2.50 s, ~4,000 tokens/s/GPU"
    beaten = {name: plain(value) for name, value in layout_texts.facts(found, FOUND, 1.125)}
    assert "The hardware allows" not in beaten
    assert beaten["Estimated"] == "~40.0 % MFU, too low: the fastest run is 12 % faster"
    unseen = dict(layout_texts.facts(replace(found, penalty=None), replace(FOUND, ranked_by="expected")))
    assert unseen["Typical slowdown"] == "unknown: no run made such a choice"


def test_a_neighbour_says_what_is_not_the_same() -> None:
    row = {
        "layout": "DP8 TP2 PP1",
        "differs": ["zero_stage", "num_gpus", "recompute"],
        "zero_stage": 3,
        "num_gpus": 64,
        "recompute": "full",
        "mfu": 0.361,
        "est_mfu": 0.38,
        "tokens_per_s_per_gpu": 1.0,
    }
    text, value = layout_texts.nearest_run(row)
    assert text == "DP8 TP2 PP1: differs in ZeRO-3, 64 GPUs, full recompute"
    assert plain(value) == "36.1 % · ~38.0 %"
    assert layout_texts.nearest_run({**row, "differs": [], "est_mfu": None, "mfu": None})[1] == "1 tokens/s/GPU"
