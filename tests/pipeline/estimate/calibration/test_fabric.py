"""A cluster's nccl-tests tell its links and network, and estimates rest on them."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import polars as pl
import pytest

from sweepscope.pipeline.estimate.calibration.fabric import (
    FEWEST,
    RUNS_OF,
    bus_bytes_per_s,
    own_fabrics,
    published_fabrics,
)
from sweepscope.pipeline.estimate.calibration.own_runs import with_own
from sweepscope.pipeline.estimate.physics.fabrics import BUNDLED, FILE, read_fabrics, render_fabrics, with_fabric
from sweepscope.pipeline.estimate.physics.profile import load_profiles, with_values
from sweepscope.pipeline.estimate.physics.question import Question
from sweepscope.pipeline.estimate.rows.estimate_rows import estimate_frame
from sweepscope.pipeline.reference.accelerators import load_published_bandwidths
from sweepscope.pipeline.reference.clusters import find_cluster
from sweepscope.pipeline.reference.models import LLAMA_2_7B

HOPPER = load_profiles()["hopper"]
SLOW = {"network_share": 0.4, "network_latency_s": 3e-5, "link_share": 0.6}
ROW = {
    **{"model": "Llama 2 7B", "accelerator": "H100-SXM-80GB", "precision": "bf16", "recompute": "none"},
    **{"seq_len": "4096", "num_gpus": "512", "dp": "512", "tp": "1", "pp": "1", "micro_batch_size": "1"},
    **{"grad_accum": "1", "zero_stage_or_fsdp": "zero1"},
}


def bench() -> pl.DataFrame:
    """What nccl-tests would print on a cluster of SLOW: three collectives, six sizes, 1 to 32 hosts."""
    cluster = find_cluster("H100 SXM")
    assert cluster is not None
    rows = pl.DataFrame(
        [
            (op, 2.0**size, 8 * nodes, nodes, "H100-SXM-80GB")
            for op in ("AllReduce", "AllGather", "ReduceScatter")
            for size in range(20, 32, 2)
            for nodes in (1, 2, 4, 8, 32)
        ],
        schema=["op", "message_bytes", "nranks", "num_nodes", "accelerator"],
        orient="row",
    )
    asked = Question(LLAMA_2_7B, cluster, with_values(HOPPER, SLOW), 4096)
    return rows.with_columns(busbw_bytes_per_s=pl.Series(bus_bytes_per_s(asked, rows)))


def test_a_fit_finds_the_cluster_that_was_measured() -> None:
    (found,) = own_fabrics(bench())
    assert found.generation == "hopper"
    assert found.error < 0.03
    assert {name: found.constants[name] for name in SLOW} == pytest.approx(SLOW, rel=0.15)


def test_a_few_bandwidths_or_an_unknown_card_tell_nothing() -> None:
    assert own_fabrics(bench().head(FEWEST - 1)) == []
    assert own_fabrics(bench().with_columns(accelerator=pl.lit("Abacus 3"))) == []
    # Without the number of hosts nobody knows what lay between the ranks.
    assert own_fabrics(bench().with_columns(num_nodes=pl.lit(None, pl.Int64))) == []


def test_estimates_of_a_home_rest_on_its_own_nccl_tests(tmp_path: Path) -> None:
    (tmp_path / FILE).parent.mkdir()
    (tmp_path / FILE).write_text(render_fabrics(own_fabrics(bench())))
    plain, own = (estimate_frame(pl.DataFrame([ROW]), with_own(folder)) for folder in (tmp_path / "none", tmp_path))
    assert own["est_time_dp_s"][0] > 2 * plain["est_time_dp_s"][0]
    assert own["est_time_linear_s"][0] == plain["est_time_linear_s"][0]
    assert "90 measured bandwidths" in own["est_assumptions"][0]
    assert "measured bandwidths" not in plain["est_assumptions"][0]


def test_what_a_profile_was_fitted_for_stays() -> None:
    (fabric,) = own_fabrics(bench())
    nanotron = load_profiles()["hopper-nanotron"]
    assert with_fabric(nanotron, fabric).network_share == nanotron.network_share
    assert with_fabric(HOPPER, fabric).network_share == fabric.constants["network_share"]
    assert with_fabric(HOPPER, None) is HOPPER


def test_bundled_fabrics_are_those_of_the_bundled_bandwidths() -> None:
    remedy = "The physics changed: sweepscope calibrate --published --out data/calibration"
    found, bundled = published_fabrics(load_published_bandwidths(), RUNS_OF), read_fabrics(BUNDLED)
    assert [replace(one, constants={}) for one in found] == [replace(one, constants={}) for one in bundled], remedy
    for now, then in zip(found, bundled, strict=True):
        assert dict(now.constants) == pytest.approx(dict(then.constants), rel=0.02), remedy
