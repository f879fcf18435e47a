"""The ratios of each run beside what NCCL's channels take of its card."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import duckdb

from sweepscope.pipeline.reference.accelerators import load_accelerator_links
from sweepscope.schemas.registry import VIEWS
from tests.dashboard.store_rows import Row, estimate_row, file_row, run_row, write_real_store
from tests.nccl_rows import nccl_file_row

LINKS = load_accelerator_links().to_dicts()


def ratios_of(tmp_path: Path, **tables: list[Row]) -> dict[str, dict[str, Any]]:
    path = write_real_store(tmp_path / "s.duckdb", accelerator_links=LINKS, **tables)
    with duckdb.connect(str(path), read_only=True) as connection:
        frame = connection.sql("SELECT * FROM run_ratios").pl()
    assert tuple(frame.columns) == VIEWS["run_ratios"].column_names
    return {row["run_id"]: row for row in frame.iter_rows(named=True)}


def test_channels_of_the_log_or_of_files_beside_it(tmp_path: Path) -> None:
    own, beside, none = "/logs/a1/train.out", "/logs/b1/train.out", "/logs/c1/train.out"
    rows = ratios_of(
        tmp_path,
        runs=[
            run_row(name, source_path=path, accelerator="H100-SXM-80GB")
            for name, path in (("a1", own), ("b1", beside), ("c1", none))
        ],
        estimates=[estimate_row("a1"), estimate_row("b1", est_status="no"), estimate_row("c1", est_rho_tp=3.0)],
        files=[
            *(file_row(path, unit=path.split("/")[2]) for path in (own, beside, none)),
            file_row("/logs/a1/nccl.log", unit="a1"),
            file_row("/logs/b1/nccl.log", unit="b1"),
        ],
        nccl_files=[
            nccl_file_row(source_path=own, num_channels=24),
            nccl_file_row(source_path="/logs/a1/nccl.log", num_channels=32),
            nccl_file_row(source_path="/logs/b1/nccl.log", num_channels=16),
        ],
    )
    assert rows["a1"]["num_channels"] == 24
    assert rows["a1"]["nccl_processor_share"] == 24 / 132
    assert (rows["b1"]["num_channels"], rows["b1"]["est_mfu"]) == (16, None)
    assert (rows["c1"]["num_channels"], rows["c1"]["est_rho_tp"]) == (None, 3.0)


def test_a_run_without_estimate_and_channels_has_no_row(tmp_path: Path) -> None:
    assert ratios_of(tmp_path, runs=[run_row()], estimates=[estimate_row(est_status="no")]) == {}
