"""What a run that ran out of GPU memory needs, from the texts that PyTorch prints and from snapshots."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import duckdb
import polars as pl
import pytest

from sweepscope.pipeline.store.publish import macros
from sweepscope.schemas.tables.estimates import ESTIMATES
from sweepscope.schemas.tables.memory import MEMORY_SNAPSHOTS
from sweepscope.schemas.tables.runs import EVENTS
from sweepscope.schemas.vocab.memory import MEM_FIT
from tests.run_rows import Row, completed_frame, open_store, rows_of, run_row

GIB, MIB = 1 << 30, 1 << 20
NEW = (
    "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate {asked}. GPU 3 has a total capacity of 79.00 GiB of "
    "which 1.00 GiB is free. Including non-PyTorch memory, this process has 78.00 GiB memory in use. Of the allocated "
    "memory {allocated} is allocated by PyTorch, and {kept} is reserved by PyTorch but unallocated. If reserved but "
    "unallocated memory is large try setting PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True"
)
GRAPHS = NEW.replace("by PyTorch, and", "by PyTorch, with 1.00 GiB allocated in private pools (e.g., CUDA Graphs), and")
MISSPELT = NEW.replace("total capacity of", "total capacty of")
OLD = (
    "RuntimeError: CUDA out of memory. Tried to allocate 128.00 MiB (GPU 5; 39.59 GiB total capacity; 37.50 GiB "
    "already allocated; 119.00 MiB free; 37.75 GiB reserved in total by PyTorch)"
)


@pytest.fixture(scope="module")
def con() -> Iterator[duckdb.DuckDBPyConnection]:
    with duckdb.connect() as connection:
        connection.execute(macros())
        yield connection


@pytest.mark.parametrize(
    ("printed", "size"),
    [
        ("1.50 GiB", 1.5 * GIB),
        ("512.00 MiB", 512 * MIB),
        ("20.00 KiB", 20_480),
        ("2.00 TiB", 2048 * GIB),
        ("7 bytes", 7),
        ("3.00 GB", 3 * GIB),
        (None, None),
    ],
)
def test_printed_sizes(con: duckdb.DuckDBPyConnection, printed: str | None, size: float | None) -> None:
    assert con.execute("SELECT bytes_in($1)", [printed]).fetchall() == [(size,)]


def oom(text: str, run_id: str = "a1", **changes: Any) -> Row:
    return {
        "run_id": run_id,
        "source_path": f"/logs/{run_id}.out",
        "line_no": 90,
        "kind": "oom",
        "text": text,
    } | changes


def store(*runs: Row, events: list[Row], estimates: list[Row] | None = None) -> duckdb.DuckDBPyConnection:
    return open_store(
        completed_frame(*runs),
        events=EVENTS.conform(pl.DataFrame(events, infer_schema_length=None)),
        estimates=ESTIMATES.conform(pl.DataFrame(estimates)) if estimates else None,
    )


def estimate(run_id: str = "a1", **gib: float) -> Row:
    parts = {"weights": 10, "gradients": 10, "optimizer": 20, "activations": 20, "logits": 2, "buffers": 1} | gib
    return {
        "run_id": run_id,
        "est_status": "ok",
        "est_mem_bytes": sum(parts.values()) * GIB,
        **{f"est_mem_{part}_bytes": size * GIB for part, size in parts.items()},
    }


def test_figures_of_the_text_since_2_1() -> None:
    texts = [NEW, GRAPHS, GRAPHS.replace("CUDA", "HIP"), MISSPELT]
    said = [text.format(asked="2.50 GiB", allocated="70.00 GiB", kept="4.00 GiB") for text in texts]
    events = [oom(text, rank=3, line_no=number) for number, text in enumerate(said)]
    rows = rows_of(store(run_row(status="oom"), events=events), "FROM gpu_oom_reports")
    assert len(rows) == len(texts)
    for row in rows:
        assert (row["gpu_index"], row["rank"]) == (3, 3)
        assert (row["oom_requested_bytes"], row["oom_device_free_bytes"]) == (2.5 * GIB, GIB)
        assert (row["allocated_bytes"], row["reserved_bytes"]) == (70 * GIB, 74 * GIB)
        assert (row["oom_missing_bytes"], row["oom_inactive_bytes"]) == (1.5 * GIB, 4 * GIB)
        assert (row["mem_process_bytes"], row["mem_used_bytes"]) == (78 * GIB, 78 * GIB)
        assert row["mem_total_bytes"] == 79 * GIB


def test_figures_of_xla_and_tensorflow() -> None:
    said = [
        "XlaRuntimeError: RESOURCE_EXHAUSTED: Out of memory while trying to allocate 2684354560 bytes.",
        "JaxRuntimeError: RESOURCE_EXHAUSTED: Out of memory allocating 2.50GiB. [executable_name='jit_step']",
        "RESOURCE_EXHAUSTED: Error allocating device buffer: Attempting to allocate 2.50G. That was not possible. There "
        "are 1.25G free.; (0x0x0_HBM0)",
        "Attempting to reserve 2.50G at the bottom of memory. That was not possible. There are 1.25G free, 0B reserved.",
        "RESOURCE_EXHAUSTED: XLA:TPU compile permanent error. Ran out of memory in memory space hbm. Used 2.50G of 2.25G "
        "hbm. Exceeded hbm capacity by 256.00M.",
        "Allocator (GPU_0_bfc) ran out of memory trying to allocate 2.50GiB (rounded to 2684354560)requested by op Mul",
        "MPS backend out of memory (MPS allocated: 7.50 GB, other allocations: 1.00 GB, max allowed: 9.00 GB). Tried to "
        "allocate 2.50 GB on private pool.",
    ]
    events = [oom(text, line_no=number) for number, text in enumerate(said)]
    rows = rows_of(store(run_row(status="oom"), events=events), "FROM gpu_oom_reports ORDER BY line_no")
    assert [row["oom_requested_bytes"] / GIB for row in rows] == [2.5] * 7
    free, missing = ([row[name] for row in rows] for name in ("oom_device_free_bytes", "oom_missing_bytes"))
    assert free == [None, None, 1.25 * GIB, 1.25 * GIB, None, None, None]
    assert missing == [None, None, 1.25 * GIB, 1.25 * GIB, 256 * MIB, None, None]
    assert [row["mem_total_bytes"] for row in rows] == [None] * 4 + [2.25 * GIB, None, None]
    assert [row["allocated_bytes"] for row in rows] == [None] * 6 + [7.5 * GIB]


def test_figures_that_no_device_has_are_unknown() -> None:
    # What PyTorch prints on MIG and WSL, where the driver does not know; and damage.
    said = NEW.format(asked="2.50 GiB", allocated="70.00 GiB", kept="9.0.0 GiB").replace("78.00", "17179869184.00")
    said = said.replace("GPU 3", f"GPU {10**30}")
    assert "17179869184.00 GiB" in said
    (row,) = rows_of(store(run_row(status="oom"), events=[oom(said)]), "FROM gpu_oom_reports")
    assert (row["oom_requested_bytes"], row["allocated_bytes"]) == (2.5 * GIB, 70 * GIB)
    assert (row["gpu_index"], row["mem_process_bytes"], row["reserved_bytes"]) == (None, None, None)


def test_figures_of_the_text_until_2_0_and_of_half_a_text() -> None:
    half = oom(
        "RuntimeError: CUDA out of memory. Tried to allocate 304.00 MiB (GPU 0; 8.00 GiB total capacity;", line_no=91
    )
    old, cut = rows_of(store(run_row(status="oom"), events=[oom(OLD), half]), "FROM gpu_oom_reports ORDER BY line_no")
    assert (old["allocated_bytes"], old["reserved_bytes"]) == (37.5 * GIB, 37.75 * GIB)
    assert (old["oom_missing_bytes"], old["oom_inactive_bytes"]) == (9 * MIB, 256 * MIB)
    assert old["mem_process_bytes"] is None
    assert (cut["oom_requested_bytes"], cut["mem_total_bytes"]) == (304 * MIB, 8 * GIB)
    assert (cut["allocated_bytes"], cut["oom_missing_bytes"]) == (None, None)


def test_a_share_of_the_device_is_what_was_left() -> None:
    old = OLD.replace("119.00 MiB free; ", "12.00 GiB free; 37.85 GiB allowed; ")
    new = NEW.format(asked="2.50 GiB", allocated="30.00 GiB", kept="4.00 GiB").replace(
        "is free. ", "is free. 35.00 GiB allowed; "
    )
    assert "allowed" in new
    told = rows_of(
        store(run_row(status="oom"), events=[oom(old), oom(new, line_no=91)]), "FROM gpu_oom_reports ORDER BY line_no"
    )
    assert [row["oom_missing_bytes"] for row in told] == [pytest.approx(0.025 * GIB, abs=2), 1.5 * GIB]


def test_texts_until_1_3_and_of_another_back_end() -> None:
    cached = OLD.replace("37.75 GiB reserved in total by PyTorch", "512.00 MiB cached")
    npu = OLD.replace("CUDA", "NPU").replace("GPU 5", "NPU 6").replace("119", "37.50 GiB current active; 119")
    told = rows_of(
        store(run_row(status="oom"), events=[oom(cached), oom(npu, line_no=91)]),
        "FROM gpu_oom_reports ORDER BY line_no",
    )
    assert [(row["gpu_index"], row["reserved_bytes"] / GIB) for row in told] == [(5, 38.0), (6, 37.75)]
    assert [row["oom_device_free_bytes"] for row in told] == [119 * MIB] * 2


def verdict(text: str, estimated: Row | None = None, *others: Row, **run: Any) -> Row:
    rows = [oom(text), *others]
    connection = store(run_row(status="oom", **run), events=rows, estimates=[estimated] if estimated else None)
    (row,) = rows_of(connection, "FROM memory_fit")
    return row


ENOUGH_IN_PIECES = NEW.format(asked="2.50 GiB", allocated="70.00 GiB", kept="4.00 GiB")
FULL = NEW.format(asked="2.50 GiB", allocated="74.00 GiB", kept="0.25 GiB")


def test_enough_in_pieces_would_fit_with_expandable_segments() -> None:
    row = verdict(ENOUGH_IN_PIECES)
    assert (row["mem_verdict"], row["verdict_basis"]) == ("expandable_segments", "oom_report")
    assert row["verdict_evidence"] == (
        "asked for 2.50 GiB, 1.50 GiB more than the GPU had free; 4.00 GiB were free inside the allocator's segments"
    )
    assert (row["oom_missing_bytes"], row["oom_inactive_bytes"]) == (1.5 * GIB, 4 * GIB)


def test_the_verdict_rests_on_the_line_that_the_status_quotes() -> None:
    fuller = oom(FULL.replace("2.50 GiB", "9.00 GiB"), line_no=91)
    quoted = verdict(ENOUGH_IN_PIECES, None, fuller, status_evidence=ENOUGH_IN_PIECES)
    assert (quoted["oom_line_no"], quoted["oom_requested_bytes"]) == (oom("")["line_no"], 2.5 * GIB)
    assert quoted["verdict_evidence"].startswith("asked for 2.50 GiB")
    # a status that quotes another line rests on none of them: then the fullest GPU failed first
    other = verdict(ENOUGH_IN_PIECES, None, fuller, status_evidence="the status file says oom")
    assert (other["oom_line_no"], other["oom_requested_bytes"]) == (91, 9 * GIB)


def test_pieces_must_hold_whole_pages_beyond_what_is_missing() -> None:
    just = NEW.format(asked="2.50 GiB", allocated="70.00 GiB", kept="1.51 GiB")  # 10 MiB more than is missing
    assert verdict(just)["mem_verdict"] == "unknown"
    assert verdict(just.replace("1.51 GiB", "1.53 GiB"))["mem_verdict"] == "expandable_segments"


def test_pieces_do_not_help_where_the_estimate_exceeds_the_card() -> None:
    assert verdict(ENOUGH_IN_PIECES, estimate(activations=20))["mem_verdict"] == "expandable_segments"
    row = verdict(ENOUGH_IN_PIECES, estimate(activations=60))
    assert row["mem_verdict"] == "recompute"
    assert row["verdict_evidence"].endswith(
        "estimated 103.00 GiB in all, weights, gradients and optimizer states 40.00 GiB, activations 60.00 GiB"
    )


def test_pieces_do_not_help_twice() -> None:
    connection = store(run_row(status="oom"), events=[oom(ENOUGH_IN_PIECES)])
    connection.execute(
        "INSERT INTO settings BY NAME SELECT 'a1' AS run_id, 'PYTORCH_CUDA_ALLOC_CONF' AS name, 'environment' AS "
        "setting_source, 'expandable_segments:True' AS value, true AS is_used, '/logs/a1.out' AS source_path"
    )
    (row,) = rows_of(connection, "FROM memory_fit")
    assert (row["mem_verdict"], row["is_expandable"]) == ("pools", True)


def test_what_helps_follows_from_the_estimated_parts() -> None:
    cases: list[tuple[Row, dict[str, float], str]] = [
        ({"recompute": "none"}, {"activations": 20}, "recompute"),
        ({"recompute": "selective"}, {"activations": 20}, "recompute"),
        ({"recompute": "full", "mbs": 4}, {"activations": 20}, "micro_batch"),
        ({"recompute": "full", "mbs": 1}, {"activations": 20}, "sharding"),
        ({"recompute": "none"}, {"activations": 1}, "sharding"),  # 1.25 GiB are missing
        ({"recompute": "none"}, {"optimizer": 60, "activations": 40}, "sharding"),  # states of 80 on a card of 79
    ]
    connection = store(
        *(run_row(str(case), status="oom", **run) for case, (run, _, _) in enumerate(cases)),
        events=[oom(FULL, str(case)) for case in range(len(cases))],
        estimates=[estimate(str(case), **parts) for case, (_, parts, _) in enumerate(cases)],
    )
    rows = rows_of(connection, "FROM memory_fit ORDER BY run_id")
    for row, (run, parts, word) in zip(rows, cases, strict=True):
        assert row["mem_verdict"] == word, (run, parts)
        assert row["parts_are_estimated"]
        assert row["states_bytes"] == (20 + parts.get("optimizer", 20)) * GIB


def test_others_are_named_before_anything_else() -> None:
    blame = oom("others held 40 of the card's 79 GiB", kind="oom_by_others")
    row = verdict(FULL, None, blame)
    assert (row["mem_verdict"], row["verdict_evidence"]) == ("others", "others held 40 of the card's 79 GiB")


def test_without_bytes_the_estimate_speaks_and_without_both_nothing() -> None:
    silent = "RuntimeError: CUDA error: out of memory"
    row = verdict(silent, estimate(activations=60))
    assert (row["mem_verdict"], row["verdict_basis"]) == ("recompute", "estimate")
    row = verdict(silent)
    assert (row["mem_verdict"], row["verdict_basis"], row["verdict_evidence"]) == (
        "unknown",
        None,
        "the log gives no bytes, and the run could not be estimated",
    )


def test_near_the_limit_is_told_with_what_fragmentation_takes() -> None:
    card = 85_520_809_984
    runs = (
        run_row("roomy", mem_peak_allocated_bytes=60 * GIB, mem_peak_reserved_bytes=70 * GIB),
        run_row("pieces", mem_peak_allocated_bytes=60 * GIB, mem_peak_reserved_bytes=76 * GIB),
        run_row("tight", mem_peak_allocated_bytes=75 * GIB, mem_peak_reserved_bytes=76 * GIB),
    )
    rows = {row["run_id"]: row for row in rows_of(store(*runs, events=[oom("x", "z")]), "FROM memory_fit")}
    assert {name: row["mem_verdict"] for name, row in rows.items()} == {"pieces": "fragmented", "tight": "fits"}
    assert rows["pieces"]["verdict_evidence"] == (
        "held 76.00 GiB of 79.65 GiB; 16.00 GiB of it were reserved beyond what was allocated"
    )
    assert rows["tight"]["mem_total_bytes"] == card


def test_a_snapshot_of_the_failure_comes_before_the_text() -> None:
    connection = store(run_row(status="oom", run_dir="/runs/a"), events=[oom(FULL)])
    snapshot = {
        "source_path": "/runs/a/oom/rank0.pickle",
        "run_dir": "/runs/a/oom",
        "device": 0,
        "mem_source": "snapshot",
        "oom_events": 1,
        "oom_requested_bytes": 2 * GIB,
        "oom_device_free_bytes": GIB,
        "oom_inactive_bytes": 3 * GIB,
        "oom_requested_active_bytes": 70 * GIB,
        "oom_reserved_bytes": 74 * GIB,
        "is_expandable": False,
        "peak_requested_active_bytes": 70 * GIB,
        "peak_reserved_bytes": 74 * GIB,
        "peak_is_lower_bound": True,
    }
    counted = {
        "source_path": "/runs/a/trace.json",
        "run_dir": "/runs/a/oom",
        "device": 0,
        "mem_source": "kineto",
        "oom_events": 1,
    }
    connection.register("rows", MEMORY_SNAPSHOTS.conform(pl.DataFrame([snapshot, counted], infer_schema_length=None)))
    connection.execute("INSERT INTO memory_snapshots SELECT * FROM rows")
    (row,) = rows_of(connection, "FROM memory_fit")
    assert (row["mem_verdict"], row["verdict_basis"]) == ("expandable_segments", "snapshot")
    assert (row["oom_missing_bytes"], row["oom_inactive_bytes"]) == (GIB, 3 * GIB)


def test_every_verdict_is_a_word_of_the_vocabulary(con: duckdb.DuckDBPyConnection) -> None:
    text = macros()
    body = text[text.index("memory_verdict_of(") : text.index("memory_evidence_of(")]
    told = {word for word in MEM_FIT if f"'{word}'" in body}
    assert told == set(MEM_FIT)


@pytest.mark.parametrize(
    ("printed", "requested"),
    [
        ("Out of memory while trying to allocate 18790481920 bytes.", 18790481920),
        ("Out of memory while trying to allocate 17.50GiB.", 17.5 * GIB),
        ("Out of memory allocating 18790481920 bytes.", 18790481920),
    ],
)
def test_xla_tells_what_was_asked_for(printed: str, requested: float) -> None:
    text = f"jax.errors.JaxRuntimeError: RESOURCE_EXHAUSTED: {printed}"
    (row,) = rows_of(store(run_row(status="oom"), events=[oom(text)]), "FROM gpu_oom_reports")
    assert (row["oom_requested_bytes"], row["mem_total_bytes"], row["oom_missing_bytes"]) == (requested, None, None)


def test_memory_that_was_free_is_no_fragmentation() -> None:
    row = verdict(ENOUGH_IN_PIECES.replace("which 1.00 GiB is free", "which 17.73 GiB is free"))
    assert row["oom_device_free_bytes"] > row["oom_requested_bytes"]
    assert (row["mem_verdict"], row["verdict_evidence"]) == (
        "unknown",
        "asked for 2.50 GiB although the GPU had 17.73 GiB free when the line was written: another process, or a limit "
        "on this one, may have held it before; 4.00 GiB were free inside the allocator's segments",
    )


def test_a_request_beyond_the_card_says_so() -> None:
    row = verdict(NEW.format(asked="80.00 GiB", allocated="1.00 GiB", kept="0.25 GiB"))
    assert row["verdict_evidence"].startswith("asked for 80.00 GiB, more than the whole card of 79.00 GiB; ")
