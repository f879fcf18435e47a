"""NCCL content through the real ingest: in logs of training, in files of its own, beside run directories."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime
from pathlib import Path

import polars as pl
import pytest

from sweepscope.pipeline.errors import UnreadableError
from sweepscope.pipeline.ingest import plan
from sweepscope.pipeline.ingest.batch import Tables, parse_batch, validate_batch
from sweepscope.pipeline.io.reader import Reader
from tests.picotron_runs import picotron_run
from tests.pipeline.nccl.bench.test_printed_table import HEADER, ROW, TAIL
from tests.pipeline.nccl.nccl_logs import Job, render
from tests.pipeline.nccl.tables.test_hangs import timeout

NOW = datetime(2035, 1, 1)


def parsed(*paths: Path) -> Tables:
    return validate_batch(parse_batch(plan.find([str(path) for path in paths]), now=NOW))


def kinds(tables: Tables) -> dict[str, tuple[str, str | None]]:
    rows = tables["files"].select("path", "kind", "parser").iter_rows()
    return {path.rsplit("/", 1)[-1]: (kind, parser) for path, kind, parser in rows}


def test_a_training_log_is_both(tmp_path: Path) -> None:
    log = picotron_run(tmp_path) / "log_1001.out"
    log.write_text(render(Job("2.21.5", nodes=1, gpus=2)).text() + log.read_text())
    tables = parsed(tmp_path)
    assert tables["runs"].select("framework", "last_step").rows() == [("picotron", 6)]
    files = tables["nccl_files"]
    assert files["source_path"].to_list() == tables["runs"]["source_path"].to_list()
    assert files.select("nranks_max", "num_communicators").rows() == [(2, 1)]
    assert files["run_dir"].to_list() == [str(log.parent)]
    assert tables["rejects"].is_empty()


def test_nccl_output_alone_is_no_run(tmp_path: Path) -> None:
    (tmp_path / "debug.log").write_text(render(Job(warns=3, calls=4)).text())
    (tmp_path / "all_gather.txt").write_text(HEADER + ROW + TAIL)
    tables = parsed(tmp_path)
    assert tables["runs"].is_empty()
    assert set(kinds(tables).values()) == {("nccl", None)}
    assert tables["nccl_files"].height == 2
    assert tables["nccl_bench"]["busbw_bytes_per_s"].to_list() == [113.60e9]


def test_a_hang_is_the_end_of_a_run(tmp_path: Path) -> None:
    (tmp_path / "train.log").write_text(render(Job()).text() + "".join(timeout(rank) for rank in range(7)))
    tables = parsed(tmp_path)
    assert tables["runs"]["status"].to_list() == ["hang"]
    assert tables["nccl_hangs"]["suspect"].to_list() == ["7"]
    assert tables["nccl_files"]["num_hangs"].to_list() == [1]


def test_a_debug_file_needs_no_suffix_and_may_be_compressed(tmp_path: Path) -> None:
    import gzip

    text = render(Job(nodes=1, gpus=1, calls=3)).text()
    (tmp_path / "nccl.node-0.4000").write_text(text)
    (tmp_path / "nccl_debug.node-0.4001.gz").write_bytes(gzip.compress(text.encode()))
    (tmp_path / "nccl.h").write_text("#define NCCL_H_")
    tables = parsed(tmp_path)
    assert kinds(tables) == {
        "nccl.node-0.4000": ("nccl", "nccl"),
        "nccl_debug.node-0.4001.gz": ("nccl", "nccl"),
        "nccl.h": ("other", None),
    }
    assert tables["nccl_files"]["coll_calls"].to_list() == [3, 3]
    assert tables["runs"].is_empty()


def test_debug_files_in_a_run_directory_belong_to_it(tmp_path: Path) -> None:
    run = picotron_run(tmp_path)
    (run / "nccl.node-0.4000").write_text(render(Job(nodes=1, gpus=1)).text())
    tables = parsed(tmp_path)
    assert tables["runs"].select("framework", "attempt").rows() == [("picotron", 1)]
    assert tables["nccl_files"]["run_dir"].to_list() == tables["runs"]["run_dir"].to_list()
    assert tables["files"]["unit"].unique().to_list() == [str(run)]


def test_a_log_without_nccl_has_no_rows(tmp_path: Path) -> None:
    picotron_run(tmp_path)
    assert not any(name.startswith("nccl_") for name in parsed(tmp_path))


def test_a_file_that_breaks_off_while_it_is_read_leaves_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def chunks(reader: Reader) -> Iterator[bytes]:
        yield from whole(reader)
        raise UnreadableError(f"Cannot read {reader.path}: Input/output error. Ingest again later.")

    whole = Reader.chunks
    monkeypatch.setattr(Reader, "chunks", chunks)
    noise = "".join(f"{number:x}\n" for number in range(3_000_000))
    (tmp_path / "nccl.node-0.4000").write_text(render(Job(nodes=1, gpus=1)).text() + noise)
    tables = parsed(tmp_path)
    assert tables["files"]["status"].to_list() == ["rejected"]
    assert tables.get("nccl_files", pl.DataFrame()).is_empty()
