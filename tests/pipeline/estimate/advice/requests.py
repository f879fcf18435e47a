"""A question that tests ask."""

from __future__ import annotations

from sweepscope.pipeline.estimate.physics.profile import load_profiles
from sweepscope.pipeline.estimate.physics.question import Question
from sweepscope.pipeline.estimate.search.enumerate import Request
from sweepscope.pipeline.reference.clusters import find_cluster
from sweepscope.pipeline.reference.models import LLAMA_2_7B


def small_request(num_gpus: int = 16) -> Request:
    cluster = find_cluster("H100-SXM-80GB")
    assert cluster is not None
    return Request(Question(LLAMA_2_7B, cluster, load_profiles()["hopper-nanotron"], 4096), num_gpus=num_gpus, gbs=256)
