"""Reading a batch: every file is accounted for, nothing raises, one bad file costs no other."""

from __future__ import annotations

import gzip
import pickle
from collections.abc import Iterable, Iterator

import numpy as np
import polars as pl
import pytest
import zstandard
from hypothesis import given, settings
from hypothesis import strategies as st
from polars.testing import assert_frame_equal

from sweepscope.pipeline.errors import UnreadableError
from sweepscope.pipeline.ingest.parser_versions import current_versions
from sweepscope.pipeline.ingest.read_batch import read_batch
from sweepscope.pipeline.io.reader import Reader
from sweepscope.pipeline.text import lines
from sweepscope.schemas.vocab import FILE_STATUS
from tests.pipeline.ingest_in_memory import Tables, batch_of, tables_of
from tests.pipeline.logs.runs.test_assemble import config, line, log

LOG = log(1, 3)
BENCH = "name,tok/s/gpu,mbs,batch_accum,seq_len\na,100,1,2,4096\n"


def ledger(tables: Tables) -> dict[str, tuple[str, str | None, str | None]]:
    """Path -> status, parser, error."""
    return {path: rest for path, *rest in tables["files"].select("path", "status", "parser", "error").iter_rows()}  # type: ignore[misc]


def test_an_empty_batch() -> None:
    batch = read_batch(
        batch_of({"a.log": "x"})
        .sources.clear()
        .select("path", "unit", "job", "launch", "kind")
        .with_columns(
            bytes=pl.lit(0, pl.Int64),
            mtime=pl.lit(0.0),
            run_dir=pl.lit(""),
            sweep=pl.lit(""),
            origin=pl.lit("measured"),
        )
    )
    assert batch.files.is_empty()
    assert batch.facts.steps.is_empty()


def test_a_mixed_batch_accounts_for_every_file_and_reads_what_it_can() -> None:
    files: dict[str, bytes | str] = {
        "good.log": LOG,
        "empty.log": b"",
        "binary.log": pickle.dumps([1, 2, 3]),
        "cut.log.gz": gzip.compress(LOG.encode())[:-9],
        "cut.log.zst": zstandard.ZstdCompressor().compress(LOG.encode())[:-9],
        "packed.log.gz": gzip.compress(LOG.encode()),
        "wide.log": LOG.encode("utf-16"),
        "unknown.log": "hello\n",
        "weights.bin": b"\0" * 100,
        "table.csv": BENCH,
        "other.csv": "a,b\n1,2\n",
        "bad.csv": b"\xff\xfe\x00\x01",
        "r/config.json": config(),
        "r/log_1.out": LOG,
        "r/status.txt": "completed",
        "q/config.json": "{",
        "q/log_1.out": LOG,
    }
    tables = tables_of(files)
    found = ledger(tables)
    assert set(found) == set(files)
    assert {status for status, _, _ in found.values()} <= set(FILE_STATUS)
    assert {path for path, (status, _, _) in found.items() if status == "rejected"} == {
        "binary.log",
        "cut.log.zst",
        "q/config.json",
    }
    assert {path for path, (status, _, _) in found.items() if status == "skipped"} == {
        "unknown.log",
        "weights.bin",
        "other.csv",
        "bad.csv",
    }
    assert all((error is not None) == (status != "parsed") for status, _, error in found.values())
    assert {error.count("\n") for _, _, error in found.values() if error} == {0}
    assert all(path in str(error) for path, (status, _, error) in found.items() if status == "rejected")
    steps = tables["steps"].group_by("source_path").len()
    assert dict(steps.iter_rows()) == dict.fromkeys(
        ["good.log", "packed.log.gz", "wide.log", "r/log_1.out", "q/log_1.out"], 3
    ) | {"cut.log.gz": 2}


def test_parsers_and_their_versions_stand_with_every_kind_of_file() -> None:
    tables = tables_of({"r/config.json": config(), "r/log_1.out": LOG, "r/x.bin": "x", "t.csv": BENCH})
    versions = current_versions()
    for path, parser, version in tables["files"].select("path", "parser", "parser_version").iter_rows():
        assert version == versions[parser or ""], path
    assert {parser for _, parser, _ in ledger(tables).values()} == {"picotron", None, "nanotron-benchmark"}


def test_a_table_gives_a_run_per_row_with_an_id_of_its_own() -> None:
    rows = pl.concat(batch_of({"t.csv": BENCH + "b,200,1,2,4096\n"}).tables)
    assert rows["run_id"].n_unique() == 2
    assert rows.select("attempt", "line_no", "framework").rows() == [(1, 2, "nanotron"), (1, 3, "nanotron")]


def test_a_file_that_fails_late_gives_nothing_and_costs_no_other(monkeypatch: pytest.MonkeyPatch) -> None:
    def chunks(reader: Reader) -> Iterator[bytes]:
        yield from whole_file(reader)
        if reader.path.endswith("a.log"):
            raise UnreadableError(f"Cannot read {reader.path}: Input/output error. Ingest again later.")

    whole_file = Reader.chunks
    monkeypatch.setattr(Reader, "chunks", chunks)
    files = {"a.log": log(1, 400), "b.log": LOG}
    whole = tables_of(files, chunk_bytes=1000, block_bytes=5000)
    assert whole["runs"]["source_path"].to_list() == ["b.log"]
    assert whole["rejects"].is_empty()
    assert ledger(whole)["a.log"][0] == "rejected"


ZSTD_FRAMES = b"".join(zstandard.ZstdCompressor().compress(log(n, n + 99).encode()) for n in range(1, 2000, 100))


@pytest.mark.parametrize(
    ("name", "data", "least", "position"),
    [
        ("cut.log.gz", gzip.compress(log(1, 400).encode())[:-9], 399, "near byte"),
        ("half.log.gz", gzip.compress(log(1, 4000).encode())[:-9000], 1000, "near byte"),
        ("tail.log.gz", gzip.compress(log(1, 400).encode()) + b"<html>502</html>", 400, "other bytes follow"),
        (
            "flipped.log.gz",
            gzip.compress(log(1, 400).encode()) + gzip.compress(b"x" * 99)[:-6] + b"123456",
            400,
            "check",
        ),
        ("cut.log.zst", ZSTD_FRAMES[:-20], 500, "near byte"),
    ],
)
def test_of_a_damaged_compressed_log_the_whole_lines_are_read(
    name: str, data: bytes, least: int, position: str
) -> None:
    tables = tables_of({name: data})
    steps = tables["steps"]["step"].to_list()
    assert steps == list(range(1, len(steps) + 1))
    assert len(steps) >= least
    (reject,) = tables["rejects"].rows(named=True)
    assert (reject["file"], reject["reason"]) == (name, "the compressed file is damaged here")
    assert position in reject["raw"]
    assert reject["line_no"] > tables["steps"]["line_no"].max()
    assert ledger(tables)[name][0] == "parsed"


def test_zeros_behind_a_gzip_stream_are_padding() -> None:
    tables = tables_of({"a.log.gz": gzip.compress(log(1, 9).encode()) + b"\0" * 512})
    assert tables["steps"].height == 9
    assert tables["rejects"].is_empty()


@pytest.mark.parametrize(("at", "size"), [(10, 5000), (4096, 64), (30_000, 100_000)])
@pytest.mark.parametrize("chunk_bytes", [700, 8 << 20])
def test_a_hole_costs_the_line_it_is_in(at: int, size: int, chunk_bytes: int) -> None:
    data = log(1, 500).encode()
    tables = tables_of({"a.log": data[:at] + b"\0" * size + data[at:]}, chunk_bytes=chunk_bytes, block_bytes=2000)
    broken = data[:at].count(b"\n") + 1
    assert tables["steps"]["step"].to_list() == [n for n in range(1, 501) if n != broken]
    assert tables["steps"].select(pl.col("step") == pl.col("line_no")).to_series().all()
    (reject,) = tables["rejects"].rows(named=True)
    assert reject["line_no"] == broken
    assert reject["raw"].startswith(f"{size:,} bytes from byte {at:,}: ")


def test_a_line_behind_a_hole_that_began_with_a_line_is_read() -> None:
    tables = tables_of({"a.log": log(1, 3).encode() + b"\0" * 9000 + log(4, 6).encode()})
    assert tables["steps"]["step"].to_list() == [1, 2, 3, 4, 5, 6]
    assert tables["rejects"].select("line_no", "raw").rows() == [(4, f"9,000 bytes from byte {len(log(1, 3)):,}")]


def test_a_huge_line_is_cut_noted_and_costs_nothing_else() -> None:
    data = LOG.encode() + b"x" * (17 << 20) + b"\n" + line(4).encode()
    tables = tables_of({"a.log": data})
    assert tables["steps"].select("step", "line_no").rows() == [(1, 1), (2, 2), (3, 3), (4, 5)]
    assert tables["rejects"].select("file", "line_no", "reason").rows() == [
        ("a.log", 4, "a line of over 16 MiB was cut")
    ]
    assert ledger(tables)["a.log"][0] == "parsed"


def test_line_numbers_go_on_over_blocks() -> None:
    tables = tables_of({"a.log": log(1, 120)}, chunk_bytes=700, block_bytes=1500)
    assert tables["steps"]["line_no"].to_list() == list(range(1, 121))


def test_small_files_are_read_together_and_large_ones_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    blocks: list[list[int]] = []
    split = lines.split_parts

    def split_noted(parts: Iterable[tuple[int, bytes, int]]) -> tuple[pl.DataFrame, np.ndarray]:
        held = list(parts)
        blocks.append([len(data) for _, data, _ in held])
        return split(held)

    monkeypatch.setattr(lines, "split_parts", split_noted)
    files = {f"{number:02d}.log": log(1, 4) for number in range(9)} | {"10.log": log(1, 100)}
    small = len(log(1, 4))
    tables = tables_of(files, chunk_bytes=1000, block_bytes=4 * small)
    assert tables["steps"].height == 9 * 4 + 100
    together = [block for block in blocks if block.count(small) > 1]
    assert [len(block) for block in together] == [4, 4]
    assert all(sum(block) <= 4 * small or len(block) == 1 for block in blocks)


def test_progress_is_told_of_every_file() -> None:
    told: list[tuple[str, int]] = []
    found = batch_of({"a.log": LOG, "b.bin": "xyz"}).files
    read_batch(
        found.select("path", "unit", "job", "launch", "kind", "bytes", "mtime", "run_dir", "sweep", "origin"),
        on_file=lambda path, size: told.append((path, size)),
    )
    assert [size for _, size in told] == found["bytes"].to_list()


def test_a_byte_order_mark_spoils_no_configuration() -> None:
    tables = tables_of({"r/config.json": "\ufeff" + config(dp=4), "r/log_1.out": LOG})
    assert tables["runs"]["dp"].to_list() == [4]


@settings(max_examples=25)
@given(
    st.dictionaries(
        st.sampled_from(
            ["a.log", "b.txt.gz", "c.zst", "t.csv", "r/config.json", "r/status.txt", "r/log_7.out", "x.bin"]
        ),
        st.one_of(
            st.binary(max_size=200),
            st.just(LOG.encode()),
            st.just(gzip.compress(LOG.encode())),
            st.binary(max_size=30).map(lambda tail: gzip.compress(LOG.encode())[:-20] + tail),
            st.binary(max_size=30).map(lambda tail: b"\x28\xb5\x2f\xfd" + tail),
            st.text(max_size=40).map(lambda cell: f"tok/s/gpu,mbs,batch_accum,seq_len\n{cell},1,2\n".encode()),
        ),
        min_size=1,
    )
)
def test_any_bytes_under_any_name_are_accounted_for(files: dict[str, bytes]) -> None:
    found = ledger(tables_of(files))
    assert set(found) == set(files)
    for status, _, error in found.values():
        assert status in FILE_STATUS
        assert (error is None) == (status == "parsed")


def test_a_log_whose_dialect_shows_late_is_read_whole() -> None:
    noise = "".join(f"loss of frame {number}: {number / 7:.3f}\n" for number in range(4_000))
    files = {"run/log_1.out": noise + log(1, 40), "run/config.json": config()}
    at_once = batch_of(files)
    in_parts = batch_of(files, chunk_bytes=4 << 10, block_bytes=4 << 10)
    assert at_once.facts.steps["step"].to_list() == list(range(1, 41))
    for kind in ("steps", "settings", "events"):
        assert_frame_equal(getattr(in_parts.facts, kind), getattr(at_once.facts, kind))


def test_tables_in_utf16_are_read() -> None:
    """As PowerShell's `>` writes them."""
    samples = (
        "timestamp, memory.used [MiB]\r\n2026/08/01 03:59:40.361, 10549 MiB\r\n2026/08/01 03:59:41.371, 1764 MiB\r\n"
    )
    box = (
        "| NVIDIA-SMI 545.23.08              Driver Version: 545.23.08    CUDA Version: 12.3     |\n"
        "|   0  NVIDIA L40S                    On  | 00000000:4A:00.0 Off |                    0 |\n"
        "| N/A   27C    P8             32W /  350W |     12MiB / 46068MiB |      0%      Default |\n"
    )
    files: dict[str, bytes | str] = {
        "gpu_log.csv": samples.encode("utf-16"),
        "nvidia-smi.txt": box.encode("utf-16"),
        "bench.csv": BENCH.encode("utf-16"),
    }
    batch = batch_of(files)
    assert batch.files["status"].to_list() == ["parsed"] * 3
    used = batch.other["gpu_samples"].sort("source_path", "line_no")["mem_used_bytes"]
    assert [value >> 20 for value in used.to_list()] == [10549, 1764, 12]
    assert sum(table.height for table in batch.tables) == 1
