"""Rules apply to the questions that their conditions describe."""

from __future__ import annotations

from typing import Any

from sweepscope.pipeline.estimate.advice.applicable_rules import applicable, question_of
from sweepscope.pipeline.reference.rules import QUESTION
from tests.pipeline.estimate.advice.requests import small_request


def question(**changes: Any) -> dict[str, Any]:
    usual = {
        "params": 8e9,
        "num_gpus": 64,
        "num_nodes": 8,
        "gpus_per_node": 8,
        "seq_len": 4096,
        "gbs_tokens": 2**20,
        "is_moe": False,
        "is_gpu_poor": False,
    }
    return {**usual, **changes}


def ids(**changes: Any) -> set[str]:
    return {rule.id for rule in applicable(question(**changes))}


def test_size_borders_are_those_of_each_document() -> None:
    assert {"chapter-small", "heuristics-13b", "slides-small"} <= ids(params=8e9)
    assert {"chapter-medium", "heuristics-13b"} <= ids(params=12e9)
    assert {"chapter-medium", "heuristics-70b"} <= ids(params=70e9)
    assert "heuristics-large" in ids(params=80e9)
    assert "chapter-large" in ids(params=100e9)
    assert not {"chapter-small", "playbook-small", "notes-a"} & ids(params=10e9)


def test_scale_and_special_cases() -> None:
    assert {"chapter-8"} == {
        name for name in ids(num_gpus=8, num_nodes=1) if name in ("chapter-8", "chapter-16", "chapter-tp-inside")
    }
    assert "chapter-128" in ids(num_gpus=128)
    assert {"chapter-512", "playbook-512", "notes-c", "slides-scale"} <= ids(num_gpus=512)
    assert {"chapter-1024", "playbook-1024", "notes-d"} <= ids(num_gpus=1024)
    assert "notes-long" in ids(seq_len=32768)
    assert "chapter-long" not in ids(seq_len=32768)
    assert {"chapter-long", "playbook-long"} <= ids(seq_len=131072)
    assert {"chapter-moe", "slides-frontier-deepseek"} <= ids(is_moe=True)
    assert {"chapter-poor-recompute", "notes-poor"} <= ids(is_gpu_poor=True)
    assert "chapter-small" not in ids(is_gpu_poor=True)


def test_a_question_that_does_not_tell_meets_no_condition_on_it() -> None:
    assert "chapter-tp-first" not in ids(gpus_per_node=None)


def test_the_question_of_a_request_has_every_name() -> None:
    asked = question_of(small_request())
    assert set(asked) == set(QUESTION)
    assert (asked["num_nodes"], asked["gbs_tokens"], asked["is_moe"], asked["is_gpu_poor"]) == (2, 2**20, False, False)
    assert question_of(small_request(2))["is_gpu_poor"]  # 54 GB of states on each of two
