"""Files beside the logs of a simulated sweep: read as the real tools' are, and telling what the truth says."""

from __future__ import annotations

import json
from pathlib import Path

import polars as pl
import pytest

from sweepscope.pipeline.ingest.batch import Tables, parse_batch, validate_batch
from sweepscope.pipeline.ingest.plan import find
from sweepscope.pipeline.simulate.evidence.repeats import VERSIONS
from sweepscope.pipeline.simulate.marker import EVIDENCE_TRUTH_NAME, TRUTH_NAME
from sweepscope.pipeline.simulate.sweep import write_sweep
from tests.pipeline.ingest_in_memory import LATER

RUNS = 120
"""As many as the demo has."""


@pytest.fixture(scope="module")
def sweep(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_sweep(tmp_path_factory.mktemp("evidence") / "sweep", runs=RUNS, seed=1, evidence=True)


@pytest.fixture(scope="module")
def tables(sweep: Path) -> Tables:
    return validate_batch(parse_batch(find([str(sweep)]), now=LATER))


def truths(sweep: Path, what: str) -> dict[str, dict[str, object]]:
    """Facts by run directory on one kind of files."""
    rows = [json.loads(line) for line in (sweep / EVIDENCE_TRUTH_NAME).read_text().splitlines()]
    return {
        str(sweep / row["where"].removesuffix(f"/{what}")): row for row in rows if row["where"].endswith(f"/{what}")
    }


@pytest.mark.slow
def test_the_same_seed_gives_the_same_bytes_and_the_same_runs_as_without(sweep: Path, tmp_path: Path) -> None:
    again = write_sweep(tmp_path / "again", runs=RUNS, seed=1, evidence=True)
    plain = write_sweep(tmp_path / "plain", runs=RUNS, seed=1)
    files = {str(path.relative_to(sweep)): path.read_bytes() for path in sweep.rglob("*") if path.is_file()}
    assert files == {str(path.relative_to(again)): path.read_bytes() for path in again.rglob("*") if path.is_file()}
    for path in (path for path in plain.glob("*/*/*/*") if path.is_file()):
        assert files[str(path.relative_to(plain))] == path.read_bytes()
    more = sum(map(len, files.values())) - sum(path.stat().st_size for path in plain.rglob("*") if path.is_file())
    assert more < 2_000_000


def test_everything_is_read_and_simulated(tables: Tables) -> None:
    kinds = tables["files"].filter(status="parsed").group_by("kind").len()
    assert set(kinds["kind"]) >= {"log", "nccl", "scheduler", "flight_record", "memory", "bench_csv"}
    assert tables["files"].filter(pl.col("status").is_in(["rejected", "failed"])).is_empty()
    assert tables["runs"]["origin"].unique().to_list() == ["simulated"]


def test_the_late_rank_is_the_suspect(sweep: Path, tables: Tables) -> None:
    (place,) = truth = truths(sweep, "flight recorder")
    hangs = tables["nccl_hangs"].filter(run_dir=place)
    (dumped,) = hangs.filter(evidence_source="flight_recorder").to_dicts()
    assert (dumped["suspect"], dumped["seq"]) == (str(truth[place]["late_rank"]), truth[place]["seq"])
    (logged,) = hangs.filter(evidence_source="watchdog").to_dicts()
    assert (logged["seq"], logged["numel_in"]) == (dumped["seq"], dumped["numel_in"])
    assert dumped["suspect"] not in logged["ranks_reporting"].split(",")


def test_the_snapshot_ends_with_the_request_that_the_log_tells_of(sweep: Path, tables: Tables) -> None:
    (place,) = truth = truths(sweep, "snapshot")
    (row,) = tables["memory_snapshots"].filter(pl.col("source_path").str.starts_with(place)).to_dicts()
    assert (row["oom_events"], row["violations"]) == (1, 0)
    assert row["allocated_bytes"] <= row["reserved_bytes"]
    (run,) = tables["runs"].filter(run_dir=place).to_dicts()
    asked = int(str(truth[place]["asked_bytes"])) / 2**30
    assert f"Tried to allocate {asked:.2f} GiB" in run["status_evidence"]


def test_communicators_have_the_ranks_and_the_transport_of_the_run(sweep: Path, tables: Tables) -> None:
    truth = truths(sweep, "nccl")
    found = tables["nccl_files"].filter(pl.col("nranks_max").is_not_null())
    rows = {str(Path(row["source_path"]).parent): row for row in found.to_dicts()}
    assert rows.pop(str(sweep / "nccl-tests"))["nranks_max"] is not None  # its header lists the ranks
    assert rows.keys() == truth.keys()
    for place, facts in truth.items():
        assert rows[place]["nranks_max"] == facts["ranks"]
        assert rows[place]["num_communicators"] == 1
        assert str(facts["transport"]) in str(rows[place]["transports"])


def test_samples_have_power_and_never_more_memory_than_the_card(sweep: Path, tables: Tables) -> None:
    samples = tables["gpu_samples"]
    assert samples["run_dir"].n_unique() == len(truths(sweep, "samples"))
    assert samples["power_w"].null_count() == 0
    assert (samples["mem_used_bytes"] <= samples["mem_total_bytes"]).all()


def test_the_scheduler_agrees_with_how_runs_ended(sweep: Path, tables: Tables) -> None:
    truth = {}
    for line in (sweep / TRUTH_NAME).read_text().splitlines():
        run = json.loads(line)
        truth[run["job_id"]] = run["status"]
    jobs = tables["scheduler_jobs"]
    assert set(jobs["job_id"]) == {job for job, status in truth.items() if status != "truncated"}
    words = {"timeout": "timeout", "node_fail": "node_fail", "preempted": "preempted", "cancelled": "cancelled"}
    for job, state in jobs.select("job_id", "job_state").unique().iter_rows():
        if state in words.values():
            assert truth[job] in (words[state], "completed")


def test_repeats_run_the_same_layout_on_two_versions(tables: Tables) -> None:
    repeated = tables["runs"].filter(pl.col("run_dir").str.contains(r"_nccl\d+_r\d+$"))
    assert set(repeated["nccl_version"]) == set(VERSIONS)
    by_layout = repeated.group_by("framework", "model", "layout", "num_gpus").agg(
        pl.col("nccl_version").n_unique(), pl.len().alias("runs")
    )
    assert by_layout.select("nccl_version", "runs").unique().rows() == [(2, 4)]
