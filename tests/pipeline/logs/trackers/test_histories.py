"""Files that wandb, TensorBoard and tensorboardX wrote: every value as their own readers give it, and runs of them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from sweepscope.pipeline.logs.trackers import tensorboard, wandb_run
from sweepscope.pipeline.logs.trackers.tracked_run import Row, TrackedRun, steps
from sweepscope.pipeline.text.record_framing import tf_records, wandb_records
from tests.pipeline.ingest_in_memory import Tables, tables_of

RECORDED = Path(__file__).parents[3] / "trackers"
WANDB = sorted(RECORDED.glob("run-*.wandb"))
EVENTS = sorted(path for path in RECORDED.glob("events.*") if path.suffix != ".json")


def expected(path: Path) -> Any:
    return json.loads((path.parent / f"{path.name}.json").read_text(encoding="utf-8"))


def flat(row: dict[str, Any], prefix: str = "") -> dict[str, float]:
    found: dict[str, float] = {}
    for name, value in row.items():
        if isinstance(value, dict):
            found |= flat(value, f"{prefix}{name}.")
        elif not isinstance(value, bool):
            found[prefix + name] = value
    return found


def test_there_are_five_files_of_each_tool() -> None:
    assert len(WANDB) >= 5
    assert len(EVENTS) >= 5


@pytest.mark.parametrize("path", WANDB, ids=lambda path: path.stem)
def test_a_wandb_file_is_read_as_wandb_reads_it(path: Path) -> None:
    run, own = wandb_run.read(path.read_bytes()), expected(path)
    rows = [{**row.scalars, "_step": row.step, "_timestamp": row.seconds} for row in run.rows]
    assert rows == [flat(row) for row in own["rows"]]
    assert (run.config, run.ended) == (own["config"], {0: "completed", 1: "fail", None: ""}[own["exit_code"]])


@pytest.mark.parametrize("path", EVENTS, ids=lambda path: path.name)
def test_an_event_file_is_read_as_tensorboard_reads_it(path: Path) -> None:
    run = tensorboard.read(path.read_bytes())
    assert [[tag, row.step, value] for row in run.rows for tag, value in row.scalars.items()] == [
        [tag, step, value] for tag, step, _, value in expected(path)
    ]
    firsts = {step: seconds for _, step, seconds, _ in reversed(expected(path))}
    assert {row.step: row.seconds for row in run.rows} == firsts


def test_columns_and_units_are_those_of_the_trainers() -> None:
    nanotron = steps(wandb_run.read((RECORDED / "run-nanotron.wandb").read_bytes())).row(0, named=True)
    assert (nanotron["step"], nanotron["loss"], nanotron["step_time_s"]) == (2, 9.5, 0.501)
    assert (nanotron["tokens_per_s"], nanotron["tokens_per_s_per_gpu"]) == (32769.0, 4096.0)
    titan = steps(tensorboard.read((RECORDED / "events.out.tfevents.torchtitan").read_bytes())).row(0, named=True)
    assert (titan["tokens_per_s"], titan["tokens_per_s_per_gpu"]) == (None, 7001.0)
    assert titan["mem_reserved_bytes"] == round(60.5 * 2**30)
    assert titan["mfu_logged"] == pytest.approx(0.41)
    megatron = steps(tensorboard.read((RECORDED / "events.out.tfevents.megatron").read_bytes()))
    assert megatron["step_time_s"].unique().to_list() == [2.0]
    assert megatron["tokens_per_s"].null_count() == megatron.height  # its `throughput` is TFLOP/s
    trainer = steps(wandb_run.read((RECORDED / "run-transformers.wandb").read_bytes()))
    assert trainer["step"].to_list() == list(range(10, 130, 10))
    assert trainer["loss"].to_list() == [4.0 / step for step in range(1, 13)]


def rows(scalars: list[dict[str, float]], seconds: float = 2.0) -> TrackedRun:
    start = 1_790_000_000.0
    return TrackedRun([Row(n, n, start + seconds * n, values) for n, values in enumerate(scalars, 1)])


def test_a_time_without_a_unit_is_in_that_of_the_clock() -> None:
    assert steps(rows([{"loss": 1.0, "step_time": 1990.0}] * 4))["step_time_s"].to_list() == [1.99] * 4
    assert steps(rows([{"loss": 1.0, "step_time": 1.99}] * 4))["step_time_s"].to_list() == [1.99] * 4
    assert steps(rows([{"loss": 1.0, "step_time": 30.0}] * 4))["step_time_s"].null_count() == 4
    assert steps(rows([{"loss": 1.0, "step_time": 1.99}]))["step_time_s"].to_list() == [None]


def test_memory_of_an_unknown_unit_is_left_out() -> None:
    found = steps(rows([{"loss": 1.0, "memory_allocated": 41.5}] * 2))
    assert found["mem_allocated_bytes"].null_count() == 2
    found = steps(rows([{"loss": 1.0, "memory_allocated": 4.0e10}] * 2))
    assert found["mem_allocated_bytes"].to_list() == [40_000_000_000] * 2


@pytest.mark.parametrize(
    "scalars", [{}, {"eval/loss": 1.0}, {"system.gpu.0.memory": 1.0}, {"accuracy": 1.0}, {"lr": 1e-3}], ids=str
)
def test_a_file_without_the_steps_of_a_training_is_none(scalars: dict[str, float]) -> None:
    with pytest.raises(ValueError, match="of a training"):
        steps(rows([scalars]))


@pytest.mark.parametrize("read", [wandb_run.read, tensorboard.read])
@pytest.mark.parametrize(
    "data", [b"plain text, and more of it than a head\n", b"\x00" * 64, b":W&B\x01\x02\x03 and no more than this"]
)
def test_other_files_are_refused(read: Any, data: bytes) -> None:
    if not (read is tensorboard.read and not data.strip(b"\x00")):
        with pytest.raises(ValueError, match="another"):
            read(data)


@pytest.mark.parametrize("path", [*WANDB, *EVENTS], ids=lambda path: path.name)
def test_every_cut_and_every_damaged_byte_gives_the_whole_records_before_it(path: Path) -> None:
    read = tensorboard.read if path in EVENTS else wandb_run.read
    records = tf_records if path in EVENTS else wandb_records
    data = path.read_bytes()
    whole = list(records(data))
    for at in range(16, len(data), max(len(data) // 60, 1)):
        kept = list(records(data[:at]))
        assert kept == whole[: len(kept)]
        assert len(read(data[:at]).rows) <= len(read(data).rows)
        damaged = list(records(data[:at] + bytes([data[at] ^ 0x55]) + data[at + 1 :]))
        assert damaged == whole[: len(damaged)] or any(len(record) > 4096 for record in whole)


def of_runs(tables: Tables) -> list[dict[str, Any]]:
    return tables["runs"].sort("source_path").to_dicts()


def test_an_offline_run_without_a_log_is_a_run() -> None:
    data = (RECORDED / "run-nanotron.wandb").read_bytes()
    (run,) = of_runs(tables_of({"wandb/offline-run-20260101_120000-a1b2c3d4/run-a1b2c3d4.wandb": data}))
    assert (run["framework"], run["status"]) == ("other", "completed")
    assert (run["tp"], run["pp"], run["seq_len"]) == (2, 1, 4096)
    assert (run["steps_logged"], run["first_step"], run["last_step"]) == (12, 2, 24)
    assert run["step_time_s"] == pytest.approx(0.5065, abs=0.005)


def test_runs_side_by_side_are_runs_of_their_own() -> None:
    files = {
        f"wandb/offline-run-20260101_12000{at}-id{at}/run-id{at}.wandb": path.read_bytes()
        for at, path in enumerate(path for path in WANDB if "nanotron" in path.name or "picotron" in path.name)
    }
    assert [(run["tp"], run["steps_logged"]) for run in of_runs(tables_of(files))] == [(2, 12), (4, 12)]


def test_a_run_with_another_exit_code_crashed_and_of_a_killed_one_nothing_says_why() -> None:
    files = {name: (RECORDED / f"run-{name}.wandb").read_bytes() for name in ("failed", "killed")}
    runs = of_runs(tables_of({f"{name}/run-{name}.wandb": data for name, data in files.items()}))
    assert [run["status"] for run in runs] == ["crash", "truncated"]


def test_event_files_of_runs_are_runs() -> None:
    files = {f"tb/{path.name.rpartition('.')[2]}/{path.name}": path.read_bytes() for path in EVENTS}
    runs = of_runs(tables_of(files))
    assert len(runs) == len(EVENTS)
    assert {run["steps_logged"] for run in runs} == {12}
    by_name = {run["source_path"].rpartition(".")[2]: run for run in runs}
    assert by_name["torchtitan"]["step_time_s"] == 0.75
    # Without a stated time, that between the times of its steps, of which each is ten.
    assert by_name["mixed"]["step_time_s"] == pytest.approx(2.0)
    assert by_name["transformers"]["step_time_s"] == pytest.approx(0.2)


def log_of(losses: list[float]) -> str:
    return "".join(
        f"[Rank 0] Step: {step:<5d} | Loss: {loss:.4f} | Global batch size: {65536:>7} | Tokens/s: {20_000 + step} | "
        f"Tokens/s/GPU: 2.5K | Tokens: {step * 65_536} | MFU: 31.50% | Memory usage:  41.50GB\n"
        for step, loss in enumerate(losses, 1)
    )


def event_file_of(losses: list[float], at: int) -> bytes:
    """Of a run of as many steps, by tensorboardX, with other losses in from step `at` on; framed anew."""
    import struct

    from sweepscope.pipeline.text.record_framing import _masked

    found = b""
    for step, loss in enumerate(losses, 1):
        tag = b"train/loss"
        value = b"\x0a" + bytes([len(tag)]) + tag + b"\x15" + struct.pack("<f", loss if step < at else loss + 1)
        summary = b"\x0a" + bytes([len(value)]) + value
        event = b"\x09" + struct.pack("<d", 1_790_000_000.0 + step) + bytes([16, step])
        event += b"\x2a" + bytes([len(summary)]) + summary
        head = struct.pack("<Q", len(event))
        found += head + struct.pack("<I", _masked(head)) + event + struct.pack("<I", _masked(event))
    return found


def test_a_history_beside_the_log_is_of_its_run_and_what_contradicts_it_is_an_event() -> None:
    losses = [10.0 - step / 4 for step in range(1, 13)]
    name = "run/tb/events.out.tfevents.1790000000.host"
    same = tables_of({"run/log_1.out": log_of(losses), name: event_file_of(losses, 99)})
    (run,) = of_runs(same)
    assert (run["source_path"], run["steps_logged"]) == ("run/log_1.out", 12)
    assert same["events"].is_empty()
    other = tables_of({"run/log_1.out": log_of(losses), name: event_file_of(losses, 11)})
    assert len(of_runs(other)) == 1
    ((kind, text),) = other["events"].select("kind", "text").rows()
    assert kind == "inconsistent"
    assert text.startswith("loss of step 11: log_1.out has 7.25, ")
    assert text.endswith(" has 8.25; the former counts (2 of 12 common steps differ)")
