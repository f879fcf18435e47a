"""`sweepscope cluster`, and estimates on a cluster with a name, as a user meets them."""

from __future__ import annotations

import json
from pathlib import Path

import polars as pl
import pytest

from sweepscope.pipeline.__main__ import main
from sweepscope.pipeline.commands.named_cluster import by_cluster, planned_request
from sweepscope.pipeline.errors import UsageError
from sweepscope.pipeline.estimate.advice.cell import cells
from sweepscope.pipeline.estimate.physics.profile import choose_profile
from sweepscope.pipeline.store.home import Home
from sweepscope.pipeline.store.lake import Lake
from sweepscope.pipeline.store.publish import publish
from sweepscope.schemas.registry import TABLES
from tests.pipeline.store.lake_rows import unit

pytestmark = pytest.mark.usefixtures("few_views_in_module")

RESULTS = "/results/ours"


def bench_rows(gbytes_per_s: float) -> pl.DataFrame:
    """All-reduces of 16 ranks on two nodes, at nearly one bandwidth from 1 MiB on."""
    rows = [
        {
            **{"source_path": f"{RESULTS}/all_reduce.log", "line_no": index + 1, "op": "AllReduce", "nranks": ranks},
            **{"num_nodes": ranks // 8, "message_bytes": 2**power, "busbw_bytes_per_s": gbytes_per_s * 1e9},
        }
        for index, (power, ranks) in enumerate((power, ranks) for power in range(24, 31) for ranks in (16, 32))
    ]
    return TABLES["nccl_bench"].conform(pl.DataFrame(rows))


@pytest.fixture
def home(tmp_path: Path) -> Home:
    found = Home.resolve(str(tmp_path / "home"))
    Lake(found).commit(unit("a"))
    Lake(found).commit({"nccl_bench": bench_rows(20.0)})
    publish(found)
    return found


def run(capsys: pytest.CaptureFixture[str], home: Home, *words: str) -> tuple[int, str]:
    capsys.readouterr()
    code = main([*words, "--home", str(home.path)])
    out = capsys.readouterr()
    return code, out.out + out.err


def test_clusters_are_described_listed_shown_and_removed(home: Home, capsys: pytest.CaptureFixture[str]) -> None:
    assert "No cluster has a name" in run(capsys, home, "cluster")[1]
    words = ("--accelerator", "H100", "--nodes", "64", "--nics-per-node", "8", "--nic-gbit", "400")
    assert run(capsys, home, "cluster", "add", "ours", *words, "--nccl-tests", RESULTS)[0] == 0
    (row,) = json.loads(run(capsys, home, "cluster", "--json")[1])
    assert (row["cluster"], row["accelerator"], row["num_nodes"]) == ("ours", "H100", 64)
    shown = json.loads(run(capsys, home, "cluster", "show", "ours", "--json")[1])
    assert len(shown["measured"]) == 14
    assert {one["busbw_bytes_per_s"] for one in shown["measured"]} == {20e9}
    code, text = run(capsys, home, "query", "select cluster, nic_gbit_per_s from clusters", "--format", "csv")
    assert (code, text.split()[-1]) == (0, "ours,400.0")
    assert run(capsys, home, "cluster", "remove", "ours")[0] == 0
    assert run(capsys, home, "cluster", "remove", "ours")[0] == 2


@pytest.mark.parametrize(
    ("words", "reason"),
    [
        (("add",), "cluster add NAME"),
        (("add", "x"), "needs a name and an accelerator"),
        (("add", "x", "--accelerator", "Z80"), "Unknown accelerator"),
        (("add", "x", "--accelerator", "H100", "--nic-gbit", "nan", "--nics-per-node", "8"), "must be positive"),
        (("add", "x", "--accelerator", "H100", "--nic-gbit", "400"), "go together"),
        (("add", "x", "--accelerator", "H100", "--nodes", "0"), "at least 1"),
        (("show", "theirs"), "no cluster of this home"),
    ],
)
def test_what_no_cluster_can_be(
    home: Home, capsys: pytest.CaptureFixture[str], words: tuple[str, ...], reason: str
) -> None:
    code, text = run(capsys, home, "cluster", *words)
    assert (code, reason in text) == (2, True), text


def test_estimates_on_a_named_cluster(home: Home, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = ("--accelerator", "H100", "--nics-per-node", "8", "--nic-gbit", "400")
    run(capsys, home, "cluster", "add", "measured", *words, "--nccl-tests", RESULTS)
    run(capsys, home, "cluster", "add", "slow", "--accelerator", "H100", "--nics-per-node", "1", "--nic-gbit", "100")
    table = tmp_path / "rows.csv"
    row = "llama-2-7b,16,16,1,1,2048,1,8"
    table.write_text(
        "model,num_gpus,dp,tp,pp,seq_len,mbs,gas,cluster\n"
        + "".join(f"{row},{name}\n" for name in ("slow", "measured", ""))
    )
    out = tmp_path / "out.csv"
    assert run(capsys, home, "estimate", str(table), "--out", str(out))[0] == 0
    found = pl.read_csv(out)
    assert found["est_status"].to_list() == ["ok", "ok", "accelerator not stated"]
    assert found["cluster"].to_list() == ["slow", "measured", None]
    assert found["est_comm_dp_s"][0] > found["est_comm_dp_s"][1]
    assert "nccl-tests of measured" in found["est_assumptions"][1]
    assert "nccl-tests" not in found["est_assumptions"][0]
    assert run(capsys, home, "estimate", str(table), "--out", str(out), "--cluster", "slow")[0] == 0
    assert pl.read_csv(out)["est_status"].to_list() == ["ok"] * 3
    assert run(capsys, home, "estimate", str(table), "--out", str(out), "--cluster", "theirs")[0] == 2


def test_a_search_on_a_named_cluster(home: Home, capsys: pytest.CaptureFixture[str]) -> None:
    run(capsys, home, "cluster", "add", "ours", "--accelerator", "H100", "--nics-per-node", "8", "--nic-gbit", "400")
    question = ("search", "--model", "llama-2-7b", "--nodes", "2", "--seq-len", "4096", "--gbs-tokens", "1048576")
    code, text = run(capsys, home, *question, "--cluster", "ours", "--json")
    assert code == 0, text
    assert run(capsys, home, *question)[0] == 2
    assert run(capsys, home, *question, "--cluster", "theirs")[0] == 2


def test_a_plan_keeps_its_cluster_for_its_later_runs(home: Home, capsys: pytest.CaptureFixture[str]) -> None:
    words = ("--accelerator", "H100", "--gpus-per-domain", "16", "--nics-per-node", "8", "--nic-gbit", "400")
    run(capsys, home, "cluster", "add", "ours", *words, "--nccl-tests", RESULTS)
    question = ("--model", "llama-2-7b", "--nodes", "2", "--seq-len", "4096", "--gbs-tokens", "1048576")
    code, text = run(capsys, home, "plan", *question, "--cluster", "ours", "--budget-gpu-hours", "4", "--json")
    assert code == 0, text
    planned = json.loads(text[: text.rindex("}") + 1])["planned_runs"]
    assert {row["cluster"] for row in planned} == {"ours"}
    asked = planned_request(planned[0], home).asked
    assert asked.cluster.gpus_per_domain == 16
    assert asked.cluster.network_bytes_per_s == 50e9
    assert "nccl-tests of ours" in asked.profile.about["fabric"]
    code, text = run(capsys, home, "plan", "next", planned[0]["plan_id"], "--budget-gpu-hours", "2", "--json")
    assert code == 0, text
    assert {row["cluster"] for row in json.loads(text[: text.rindex("}") + 1])["planned_runs"]} == {"ours"}
    run(capsys, home, "cluster", "remove", "ours")
    assert planned_request(planned[0], home).asked.cluster.gpus_per_domain == 8


def test_runs_are_asked_on_the_cluster_that_they_name(home: Home, capsys: pytest.CaptureFixture[str]) -> None:
    run(capsys, home, "cluster", "add", "slow", "--accelerator", "H100", "--nics-per-node", "1", "--nic-gbit", "100")
    facts = {"model": "llama-2-7b", "num_gpus": 16, "dp": 16, "tp": 1, "pp": 1, "seq_len": 4096, "mbs": 1, "gas": 4}
    rows = [{**facts, "framework": "nanotron", "accelerator": "H100", "cluster": name} for name in ("slow", "x", None)]
    runs = TABLES["runs"].conform(pl.DataFrame([{**row, "gbs_tokens": 262144, "origin": "measured"} for row in rows]))

    def networks(given: str | None) -> list[float]:
        parts = by_cluster(runs, choose_profile, home, given)
        requests = [cell.request for rows, choose in parts for cell in cells(rows, choose)]
        return [one.asked.cluster.network_bytes_per_s for one in requests if one is not None]

    slow = 12.5e9 / 8
    assert networks(None) == [slow, 50e9]
    assert networks("slow") == [slow]
    with pytest.raises(UsageError, match="no cluster of this home"):
        networks("x")
