from __future__ import annotations

from typing import Any

import polars as pl
import pytest

from sweepscope.dashboard.selection.filters import ALL, UNKNOWN, Filters
from sweepscope.dashboard.selection.slices import Other, Slice, default_origin, options, others, resolve_slice

_H100, _A100 = "H100-SXM-80GB", "A100-SXM-80GB"


def slices(*rows: dict[str, Any]) -> pl.DataFrame:
    plain = {
        "origin": "published",
        "accelerator": _H100,
        "seq_len": 4096,
        "gbs_tokens": 1_048_576,
        "sweep": "playbook",
        "runs_tried": 20,
        "runs_completed": 10,
        "runs_with_mfu": 0,
        "models": ["8B"],
    }
    schema = {
        "origin": pl.String,
        "accelerator": pl.String,
        "seq_len": pl.Int64,
        "gbs_tokens": pl.Int64,
        "sweep": pl.String,
        "runs_tried": pl.Int64,
        "runs_completed": pl.Int64,
        "runs_with_mfu": pl.Int64,
        "models": pl.List(pl.String),
    }
    return pl.DataFrame([plain | row for row in rows], schema=schema)


def test_the_grid_with_most_completed_runs_is_shown_first() -> None:
    found, ignored = resolve_slice(Filters(), slices({"runs_completed": 3}, {"seq_len": 8192, "runs_completed": 9}))
    assert found == Slice("published", _H100, 8192, 1_048_576, "playbook")
    assert ignored == ()


def test_own_measured_runs_come_before_more_published_ones() -> None:
    frame = slices({"runs_completed": 5000}, {"origin": "measured", "runs_completed": 1, "sweep": "mine"})
    found, _ = resolve_slice(Filters(), frame)
    assert found is not None
    assert found.origin == "measured"


def test_measured_runs_without_a_result_do_not_hide_published_ones() -> None:
    frame = slices({}, {"origin": "measured", "runs_completed": 0})
    assert default_origin(frame) == "published"


@pytest.mark.parametrize(
    ("origins", "offered"),
    [
        (["published", "simulated"], ["published", "simulated"]),
        (["published", "simulated", "measured"], ["measured", "published"]),
        (["simulated"], ["simulated"]),
    ],
)
def test_simulated_rows_disappear_once_there_are_measured_ones(origins: list[str], offered: list[str]) -> None:
    frame = slices(*({"origin": origin} for origin in origins))
    found, _ = resolve_slice(Filters(), frame)
    assert found is not None
    assert options("origin", found, frame) == offered


def test_a_link_to_simulated_rows_is_refused_once_there_are_measured_ones() -> None:
    frame = slices({"origin": "simulated"}, {"origin": "measured"})
    found, ignored = resolve_slice(Filters(origin="simulated"), frame)
    assert found is not None
    assert (found.origin, ignored) == ("measured", ("origin",))


def test_a_choice_that_is_gone_is_skipped_and_the_others_hold() -> None:
    frame = slices({}, {"seq_len": 8192, "runs_completed": 1})
    found, ignored = resolve_slice(Filters(accelerator="TPU", seq_len=8192), frame)
    assert found is not None
    assert (found.seq_len, ignored) == (8192, ("accelerator",))


def test_an_unknown_accelerator_is_a_grid_of_its_own() -> None:
    frame = slices({}, {"accelerator": None, "runs_completed": 1})
    found, _ = resolve_slice(Filters(accelerator=UNKNOWN), frame)
    assert found == Slice("published", None, 4096, 1_048_576, "playbook")
    assert options("accelerator", found, frame) == [_H100, UNKNOWN]


def test_published_runs_are_shown_study_by_study() -> None:
    frame = slices({"runs_completed": 4}, {"sweep": "foundry", "runs_completed": 5})
    assert resolve_slice(Filters(), frame)[0] == Slice("published", _H100, 4096, 1_048_576, "foundry")
    assert resolve_slice(Filters(sweep=ALL), frame)[0] == Slice("published", _H100, 4096, 1_048_576)
    assert resolve_slice(Filters(sweep="playbook"), frame)[0] == Slice("published", _H100, 4096, 1_048_576, "playbook")


def test_own_sweeps_are_shown_together() -> None:
    frame = slices(
        {"origin": "measured", "sweep": "monday", "runs_completed": 2},
        {"origin": "measured", "sweep": "tuesday", "runs_completed": 2},
        {"origin": "measured", "sweep": "other card", "accelerator": _A100, "runs_completed": 3},
    )
    found, _ = resolve_slice(Filters(), frame)
    assert found == Slice("measured", _H100, 4096, 1_048_576)
    assert options("sweep", found, frame) == [ALL, "monday", "tuesday"]


def test_later_options_depend_on_earlier_choices() -> None:
    frame = slices({}, {"accelerator": _A100, "seq_len": 2048, "runs_completed": 1})
    found, _ = resolve_slice(Filters(), frame)
    assert found is not None
    assert options("accelerator", found, frame) == [_H100, _A100]
    assert options("seq_len", found, frame) == [4096]


def test_an_empty_store_has_no_slice() -> None:
    assert resolve_slice(Filters(), slices()) == (None, ())
    assert default_origin(slices()) is None


def test_a_result_whose_mfu_is_known_counts_twice() -> None:
    frame = slices({"runs_completed": 3}, {"seq_len": 8192, "runs_completed": 2, "runs_with_mfu": 2})
    found, _ = resolve_slice(Filters(), frame)
    assert found is not None
    assert options("seq_len", found, frame) == [8192, 4096]


def test_of_grids_that_answer_alike_the_one_with_an_mfu_comes_first() -> None:
    frame = slices({"runs_completed": 2}, {"seq_len": 8192, "runs_completed": 1, "runs_with_mfu": 1, "runs_tried": 2})
    found, _ = resolve_slice(Filters(), frame)
    assert found is not None
    assert found.seq_len == 8192


def test_trials_on_a_cpu_do_not_stand_before_results_of_accelerators() -> None:
    frame = slices({"accelerator": "CPU", "runs_completed": 9}, {"runs_completed": 1, "runs_tried": 2})
    found, _ = resolve_slice(Filters(), frame)
    assert found == Slice("published", _H100, 4096, 1_048_576, "playbook")
    assert resolve_slice(Filters(), frame[:1])[0] == Slice("published", "CPU", 4096, 1_048_576, "playbook")


def test_runs_of_which_no_accelerator_is_known_are_no_trials_on_a_cpu() -> None:
    frame = slices({"accelerator": None, "runs_completed": 9}, {"runs_completed": 4, "runs_with_mfu": 4})
    found, _ = resolve_slice(Filters(), frame)
    assert found is not None
    assert found.accelerator is None


def test_other_grids_of_the_same_origin_are_offered_those_that_answer_most_first() -> None:
    frame = slices(
        {},
        {"seq_len": 8192, "runs_completed": 3},
        {"sweep": "other", "runs_completed": 7},
        {"origin": "measured"},
        {"seq_len": 512, "runs_completed": 0},
    )
    chosen = Slice("published", _H100, 4096, 1_048_576, "playbook")
    assert others(chosen, frame) == [
        Other(Slice("published", _H100, 4096, 1_048_576, "other"), ("8B",), 7, 20),
        Other(Slice("published", _H100, 8192, 1_048_576, "playbook"), ("8B",), 3, 20),
    ]


def test_sweeps_of_ones_own_belong_to_one_grid() -> None:
    frame = slices(
        *(
            {"origin": "measured", "sweep": name, "accelerator": card}
            for name, card in (("a", _H100), ("b", _H100), ("a", _A100))
        )
    )
    chosen = Slice("measured", _H100, 4096, 1_048_576)
    assert others(chosen, frame) == [Other(Slice("measured", _A100, 4096, 1_048_576), ("8B",), 10, 20)]


def test_the_models_of_several_sweeps_are_each_named_once() -> None:
    frame = slices(
        {"origin": "measured", "seq_len": 512},
        {"origin": "measured", "sweep": "a", "models": ["8B", "70B"]},
        {"origin": "measured", "sweep": "b"},
    )
    chosen = Slice("measured", _H100, 512, 1_048_576)
    assert [other.models for other in others(chosen, frame)] == [("70B", "8B")]
