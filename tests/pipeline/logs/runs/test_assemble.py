"""The fold: facts of many files to runs. Which files are one run, which lines one attempt, which value counts."""

from __future__ import annotations

import json
from datetime import datetime

import polars as pl
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from sweepscope.pipeline.derive.run_id import run_id
from sweepscope.pipeline.ingest.validate import validate
from sweepscope.pipeline.simulate.generate import generate
from sweepscope.pipeline.simulate.render import render
from sweepscope.schemas.registry import TABLES
from tests.pipeline.ingest_in_memory import Tables, assembled, batch_of, batches_of, tables_of
from tests.properties import stated_examples


def line(step: int, *, rank: int = 0, loss: float | None = None, tokens_per_s: float = 8000.0, gpus: int = 4) -> str:
    """A picotron step line."""
    return (
        f"[default{rank % 8}]:[rank {rank}] Step: {step:<5d} | Loss: {loss or 8 - step / 100:6.4f} | Global batch size: "
        f"  1.02K | Tokens/s: {tokens_per_s:7.2f} | Tokens/s/GPU: {tokens_per_s / gpus:7.2f} | Tokens: {step}.02K | "
        "MFU:  0.01% | Memory usage:   1.75GB"
    )


def log(first: int, last: int, **options: float) -> str:
    return "".join(line(step, **options) + "\n" for step in range(first, last + 1))  # type: ignore[arg-type]


def config(planned: int = 6, **layout: int) -> str:
    sizes = {f"{name}_size": layout.get(name, 1) for name in ("tp", "cp", "pp", "dp")}
    training = {
        "total_train_steps": planned,
        "seq_length": 128,
        "micro_batch_size": 2,
        "gradient_accumulation_steps": 4,
    }
    return json.dumps({"distributed": sizes, "model": {"name": "tests/tiny"}, "training": training})


def attempts(tables: Tables) -> list[tuple[object, ...]]:
    """attempt, first and last step, status of every run, in order."""
    return tables["runs"].sort("run_dir", "attempt").select("attempt", "first_step", "last_step", "status").rows()


OOM = "[rank3]: torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.90 GiB. GPU 3 has a total capacity\n"
LAUNCH = "[rank0]:[titan] 2026-05-19 19:35:{:02d},730 - root - INFO - Starting job: Llama 3 training\n"


def titan(step: int, second: int, rank: int = 0) -> str:
    return (
        f"[rank{rank}]:[titan] 2026-05-19 19:36:{second:02d},730 - root - INFO - step: {step:2d}  loss:  7.01706  "
        "grad_norm: 31.3750  memory: 169.20GiB(94.87%)  tps: 9,646  tflops: 812.70  mfu: 36.12%\n"
    )


class TestUnits:
    def test_no_files_no_rows(self) -> None:
        batch = tables_of({"x/picture.png": b"\x89PNG"})
        assert all(batch[name].is_empty() for name in ("runs", "steps", "events", "settings", "rejects"))
        assert batch["files"]["status"].to_list() == ["skipped"]

    def test_an_empty_log_is_a_file_and_no_run(self) -> None:
        tables = tables_of({"train.log": ""})
        assert tables["runs"].is_empty()
        assert tables["files"].select("status", "parser").rows() == [("parsed", None)]

    def test_a_single_step_is_a_run(self) -> None:
        assert attempts(tables_of({"train.log": line(1)})) == [(1, 1, 1, "truncated")]

    def test_text_of_no_framework_is_no_run(self) -> None:
        tables = tables_of({"notes.txt": "Traceback (most recent call last):\nValueError: from a notebook\n"})
        assert tables["runs"].is_empty()
        assert tables["events"].is_empty()
        reason = "nothing in it tells of a training; its last line: ValueError: from a notebook"
        assert tables["files"].select("status", "error").rows() == [("skipped", f"not the log of a training: {reason}")]

    def test_a_gpu_out_of_memory_without_a_known_framework_is_a_run_of_another(self) -> None:
        runs = tables_of({"job.out": OOM})["runs"]
        assert runs.select("framework", "status", "parser").rows() == [("other", "oom", "evidence")]

    @pytest.mark.parametrize("name", ["slurm-4711.out", "sweep.log", "notes.txt"])
    def test_a_job_that_died_before_its_trainer_spoke_is_a_run(self, name: str) -> None:
        text = "python: can't open file 'train.py': [Errno 2] No such file or directory\n"
        assert tables_of({name: text})["runs"]["status"].to_list() == ["crash"]

    def test_a_run_directory_is_one_run_with_its_config_status_and_stderr(self) -> None:
        files = {
            "dp4/config.json": config(dp=4),
            "dp4/status.txt": "fail",
            "dp4/log_1001.out": log(1, 3),
            "dp4/log_1001.err": OOM,
        }
        tables = tables_of(files)
        assert tables["runs"].select("status", "dp", "job_id", "source_path").rows() == [
            ("oom", 4, "1001", "dp4/log_1001.out")
        ]
        assert tables["events"].filter(kind="oom")["source_path"].to_list() == ["dp4/log_1001.err"]

    def test_a_configured_run_that_printed_nothing_is_a_run(self) -> None:
        tables = tables_of({"dp4/config.json": config(dp=4), "dp4/status.txt": "fail", "dp4/log_1.out": "starting\n"})
        assert tables["runs"].select("framework", "status", "status_confidence", "dp", "first_step").rows() == [
            ("picotron", "crash", "medium", 4, None)
        ]

    def test_lone_logs_are_runs_of_their_own(self) -> None:
        tables = tables_of({"a.log": log(1, 2), "b.log": log(1, 3), "b.err": OOM})
        assert tables["runs"].select("source_path", "status").sort("source_path").rows() == [
            ("a.log", "truncated"),
            ("b.log", "oom"),
        ]

    def test_settings_printed_to_stderr_belong_to_the_run(self) -> None:
        files = {"a.out": log(1, 3), "a.err": "Tokens per step: 1.02K\nNumber of parameters: 2.56M\n"}
        tables = tables_of(files)
        assert tables["settings"].filter(name="params").select("value", "source_path").rows() == [("2560000", "a.err")]

    def test_what_the_leading_log_says_beats_its_stderr(self) -> None:
        files = {
            "a.out": "Number of parameters: 1.00M\n" + log(1, 3),
            "a.err": "x\nTokens per step: 1K\nNumber of parameters: 2.56M\n",
        }
        assert tables_of(files)["settings"].filter(name="params")["value"].to_list() == ["1000000"]


class TestAttempts:
    def test_several_runs_in_one_file(self) -> None:
        tables = tables_of({"all.log": log(1, 4) + log(1, 2) + log(1, 3)})
        assert attempts(tables) == [(1, 1, 4, "truncated"), (2, 1, 2, "truncated"), (3, 1, 3, "truncated")]
        assert tables["runs"]["run_id"].n_unique() == 3
        assert tables["runs"].sort("attempt")["line_no"].to_list() == [1, 5, 7]

    def test_a_restart_within_a_file_that_resumes(self) -> None:
        text = (
            LAUNCH.format(1)
            + "".join(titan(s, s) for s in (1, 10, 20))
            + LAUNCH.format(50)
            + titan(20, 55)
            + titan(30, 58)
        )
        tables = tables_of({"a.log": text})
        assert attempts(tables) == [(1, 1, 20, "truncated"), (2, 20, 30, "truncated")]
        assert tables["runs"].sort("attempt")["line_no"].to_list() == [1, 5]

    def test_a_restart_goes_on_without_falling_back(self) -> None:
        text = LAUNCH.format(1) + titan(1, 2) + titan(10, 3) + LAUNCH.format(50) + titan(20, 55)
        assert [row[:3] for row in attempts(tables_of({"a.log": text}))] == [(1, 1, 10), (2, 20, 20)]

    def test_a_launch_without_steps_is_an_attempt(self) -> None:
        text = LAUNCH.format(1) + titan(1, 2) + titan(10, 3) + OOM + LAUNCH.format(50)
        assert attempts(tables_of({"a.log": text})) == [(1, 1, 10, "oom"), (2, None, None, "truncated")]

    def test_a_launch_and_nothing_else_is_one_attempt(self) -> None:
        assert attempts(tables_of({"a.log": "[rank0]:torchtitan version: 0.2.1\n"})) == [(1, None, None, "truncated")]

    def test_evidence_belongs_to_the_attempt_in_whose_lines_it_stands(self) -> None:
        text = LAUNCH.format(1) + titan(1, 2) + OOM + LAUNCH.format(9) + titan(1, 12) + titan(2, 13)
        tables = tables_of({"a.log": text})
        assert [row[3] for row in attempts(tables)] == ["oom", "truncated"]

    def test_an_attempt_that_prints_no_configuration_has_the_one_before(self) -> None:
        mesh = "[rank0]:[titan] 2026-05-19 19:35:02,730 - root - INFO - Building 1-D device mesh with ['tp'], [8]\n"
        text = LAUNCH.format(1) + mesh + titan(1, 2) + titan(2, 3) + titan(1, 9)
        assert tables_of({"a.log": text})["runs"]["tp"].to_list() == [8, 8]

    def test_a_requeued_job_is_the_next_attempt(self) -> None:
        files = {"r/config.json": config(), "r/log_1001.out": log(1, 3) + OOM, "r/log_1002.out": log(1, 6)}
        tables = tables_of(files)
        assert attempts(tables) == [(1, 1, 3, "oom"), (2, 1, 6, "completed")]
        assert tables["runs"].sort("attempt")["job_id"].to_list() == ["1001", "1002"]

    def test_requeued_jobs_are_in_the_order_of_their_numbers(self) -> None:
        files = {"r/config.json": config(), "r/log_999.out": log(1, 2), "r/log_1000.out": log(1, 4)}
        assert [row[:3] for row in attempts(tables_of(files))] == [(1, 1, 2), (2, 1, 4)]

    def test_a_status_file_speaks_of_the_newest_attempt_only(self) -> None:
        files = {
            "r/config.json": config(),
            "r/status.txt": "timeout",
            "r/log_11101.out": log(1, 2),
            "r/log_11102.out": log(1, 3),
        }
        assert [row[3] for row in attempts(tables_of(files))] == ["truncated", "timeout"]

    def test_ids_name_the_file_and_its_attempt(self) -> None:
        batch = batch_of({"r/log_1001.out": log(1, 3) + log(1, 2)})
        paths = batch.sources["path"].to_list()
        assert run_id(paths[0], "1") != run_id(paths[0], "2")


class TestRanks:
    def test_two_ranks_printing_count_once(self) -> None:
        text = "".join(line(step, rank=rank) + "\n" for step in (1, 2, 3) for rank in (0, 7))
        tables = tables_of({"a.log": text})
        assert attempts(tables) == [(1, 1, 3, "truncated")]
        assert tables["steps"]["line_no"].to_list() == [2, 4, 6]

    def test_ranks_whose_output_arrives_one_after_the_other_are_one_attempt(self) -> None:
        tables = tables_of({"a.log": log(1, 5, rank=0) + log(1, 5, rank=7)})
        assert attempts(tables) == [(1, 1, 5, "truncated")]
        assert tables["steps"]["line_no"].to_list() == [6, 7, 8, 9, 10]

    def test_after_a_restart_another_rank_may_print(self) -> None:
        text = LAUNCH.format(1) + titan(1, 2, 0) + titan(2, 3, 0) + LAUNCH.format(4) + titan(1, 5, 3) + titan(2, 6, 3)
        assert [row[:3] for row in attempts(tables_of({"a.log": text}))] == [(1, 1, 2), (2, 1, 2)]

    def test_a_line_printed_twice_is_one_step(self) -> None:
        tables = tables_of({"a.log": "".join((line(step) + "\n") * 2 for step in (1, 2, 3))})
        assert tables["steps"].select("step", "line_no").rows() == [(1, 1), (2, 3), (3, 5)]

    def test_steps_redrawn_in_one_line_stay_in_order(self) -> None:
        tables = tables_of({"a.log": "\r".join(line(step) for step in range(1, 30)) + "\n"})
        assert attempts(tables) == [(1, 1, 29, "truncated")]


class TestConfiguration:
    def test_config_beats_the_folder_name_and_the_conflict_is_an_event(self) -> None:
        files = {"dp8_tp2_mbs2/config.json": config(dp=4, tp=2), "dp8_tp2_mbs2/log_1.out": log(1, 6)}
        tables = tables_of(files)
        assert tables["runs"].select("dp", "tp", "mbs").rows() == [(4, 2, 2)]
        conflicts = tables["events"].filter(kind="config_conflict")
        assert conflicts["text"].to_list() == ["dp: folder_name says 8, config_file says 4; the latter counts"]
        assert conflicts["run_id"].to_list() == tables["runs"]["run_id"].to_list()

    def test_both_values_of_a_conflict_stand_in_settings(self) -> None:
        files = {"dp8/config.json": config(dp=4), "dp8/log_1.out": log(1, 6)}
        rows = tables_of(files)["settings"].filter(name="dp").select("value", "setting_source", "is_used").rows()
        assert rows == [("4", "config_file", True), ("8", "folder_name", False)]

    def test_an_unreadable_value_is_rejected_and_unknown(self) -> None:
        broken = config(dp=4).replace('"tp_size": 1', '"tp_size": "many"')
        tables = tables_of({"r/config.json": broken, "r/log_1.out": log(1, 6)})
        assert tables["runs"].select("dp", "tp").rows() == [(4, None)]
        assert tables["rejects"].select("file", "table", "column", "raw").rows() == [
            ("r/config.json", "runs", "tp", "many")
        ]

    @pytest.mark.slow
    @pytest.mark.parametrize(
        "damaged",
        ["", "{", "null", "[1, 2]", '{"model": {}}', "[" * 100_000, "\x00\x01"],
        ids=["empty", "cut", "null", "list", "foreign", "deep", "binary"],
    )
    def test_a_damaged_config_is_rejected_and_the_run_stays(self, damaged: str) -> None:
        tables = tables_of({"dp1_tp4/config.json": damaged, "dp1_tp4/log_1.out": log(1, 3)})
        assert attempts(tables) == [(1, 1, 3, "truncated")]
        assert tables["runs"].select("dp", "tp").rows() == [(1, 4)]  # from the folder's name
        (status, error) = tables["files"].filter(path="dp1_tp4/config.json").select("status", "error").row(0)
        assert status == "rejected"
        assert error
        assert "\n" not in error

    def test_a_config_without_a_setting_of_a_training_is_skipped_and_the_run_stays(self) -> None:
        odd = '{"distributed": 1, "training": {}}'
        tables = tables_of({"dp1_tp4/config.json": odd, "dp1_tp4/log_1.out": log(1, 3)})
        assert tables["runs"].select("dp", "tp").rows() == [(1, 4)]
        (status, error) = tables["files"].filter(path="dp1_tp4/config.json").select("status", "error").row(0)
        assert (status, error) == ("skipped", "no settings of a training in it, under names that are known")

    def test_without_a_config_the_folder_name_is_what_is_known(self) -> None:
        tables = tables_of({"dp2_tp2_pp1_mbs8_ga4_sl256/train.log": log(1, 3)})
        assert tables["runs"].select("dp", "tp", "seq_len").rows() == [(2, 2, 256)]

    def test_a_status_file_that_contradicts_the_log_loses(self) -> None:
        files = {"r/config.json": config(planned=6), "r/log_1.out": log(1, 6), "r/status.txt": "oom"}
        assert attempts(tables_of(files)) == [(1, 1, 6, "completed")]

    def test_an_unknown_status_word_is_rejected(self) -> None:
        files = {"r/config.json": config(planned=6), "r/log_1.out": log(1, 3), "r/status.txt": "exploded"}
        tables = tables_of(files)
        assert attempts(tables) == [(1, 1, 3, "truncated")]
        assert tables["files"].filter(path="r/status.txt")["status"].to_list() == ["rejected"]


class TestSteps:
    def test_a_line_cut_before_its_values_is_a_reject(self) -> None:
        tables = tables_of({"a.log": log(1, 2) + line(3)[:40]})
        assert tables["steps"]["step"].to_list() == [1, 2]
        assert tables["rejects"].select("file", "line_no", "table", "raw").rows() == [
            ("a.log", 3, "steps", line(3)[:40].removeprefix("[default0]:"))
        ]

    def test_begin_and_end_are_the_first_and_last_timestamp_printed(self) -> None:
        text = (
            LAUNCH.format(5)
            + "[rank0]: built on 1999-01-01 00:00:00, step: licence until 2099-01-01 00:00:00\n"
            + "".join(titan(step, step) for step in range(1, 40))
        )
        row = tables_of({"a.log": text})["runs"].select("started_at", "ended_at").row(0)
        assert row == (datetime(2026, 5, 19, 19, 35, 5), datetime(2026, 5, 19, 19, 36, 39))

    def test_accelerators_follow_from_two_printed_throughputs(self) -> None:
        assert tables_of({"a.log": log(1, 3, gpus=8)})["runs"]["num_gpus"].to_list() == [8]

    def test_three_digits_do_not_prove_a_count_of_hundreds(self) -> None:
        text = line(1).replace("8000.00", "  1.53M").replace("2000.00", "  2.99K")
        runs = tables_of({"a.log": text})["runs"]
        assert "num_gpus" not in runs.columns or runs["num_gpus"].to_list() == [None]


def simulated(seed: int, number: int) -> dict[str, bytes]:
    """Files of a few simulated runs, failures and noise included."""
    return {f"{run.path}/{name}": data for run in generate(seed, number) for name, data in render(run).items()}


def content(tables: Tables) -> dict[str, list[tuple[object, ...]]]:
    """Rows of every table without ids and times of reading, in an order of their own."""
    left_out = {"run_id", "source", "mtime", "modified_at"}
    plain = {name: frame.drop(left_out & set(frame.columns)) for name, frame in tables.items()}
    return {
        name: sorted(tuple(str(cell) for cell in row) for row in frame.select(sorted(frame.columns)).iter_rows())
        for name, frame in plain.items()
    }


@pytest.mark.slow
@stated_examples()
@given(seed=st.integers(0, 10_000), chunk=st.integers(1, 6000), block=st.integers(1, 20_000))
@example(seed=2, chunk=97, block=9_973)
@example(seed=5, chunk=4_099, block=1_021)
@example(seed=8, chunk=6_000, block=20_000)
def test_tables_do_not_depend_on_the_size_of_chunks_and_blocks(seed: int, chunk: int, block: int) -> None:
    files = simulated(seed, 2)
    assert content(tables_of(files, chunk_bytes=chunk, block_bytes=block)) == content(tables_of(files))


@pytest.mark.slow
@pytest.mark.parametrize(("chunk", "block"), [(1, 1), (2, 64), (3, 1), (7, 200), (500, 3)])
def test_a_few_bytes_at_a_time_are_enough(chunk: int, block: int) -> None:
    files = {"a/config.json": config(dp=2).encode(), "a/log_1.out": (log(1, 3) + OOM).encode()}
    assert content(tables_of(files, chunk_bytes=chunk, block_bytes=block)) == content(tables_of(files))


@pytest.mark.slow
@stated_examples()
@given(seed=st.integers(0, 10_000))
@example(seed=1)
@example(seed=12)
def test_shards_sum_to_the_whole(seed: int) -> None:
    files = simulated(seed, 3)
    shards = [assembled(batch) for batch in batches_of(files, units=1)]
    assert len(shards) > 1
    together = {name: pl.concat([shard[name] for shard in shards], how="diagonal_relaxed") for name in shards[0]}
    whole = {name: frame.select(together[name].columns) for name, frame in tables_of(files).items()}
    assert content(together) == content(whole)


@pytest.mark.slow
@stated_examples()
@given(seed=st.integers(0, 10_000))
@example(seed=3)
@example(seed=77)
def test_every_row_points_to_a_line_that_is_there(seed: int) -> None:
    files = simulated(seed, 8)
    tables = tables_of(files)
    for name in ("steps", "events", "runs"):
        for path, number in tables[name].select("source_path", "line_no").drop_nulls().iter_rows():
            assert 1 <= number <= files[path].count(b"\n") + 1
    assert tables["runs"]["run_id"].is_unique().all()
    assert set(tables["steps"]["run_id"]) <= set(tables["runs"]["run_id"])
    assert not tables["steps"].select(pl.struct("run_id", "step").is_duplicated().any()).item()


class TestImpossibleValues:
    """One odd value costs itself, never its row."""

    def check(self, text: str, **beside: str) -> Tables:
        tables = tables_of({"run/train.log": text, **{f"run/{name}": body for name, body in beside.items()}})
        for name in ("runs", "steps"):
            assert validate(TABLES[name], TABLES[name].conform(tables[name])).rejects.is_empty()
        return tables

    def test_a_time_that_was_rounded_to_zero_is_unknown(self) -> None:
        line = "completed step: {}, seconds: {}, TFLOP/s/device: {}, Tokens/s/device: {}, loss: 9.871\n"
        text = line.format(0, "0.000", "inf", "inf") + "".join(
            line.format(n, "2.000", "8.5", "100.0") for n in (1, 2, 3)
        )
        tables = self.check(text)
        names = ("step_time_s", "tflops_per_gpu_logged", "tokens_per_s_per_gpu")
        assert tables["steps"].sort("step").select(names).rows() == [(None, None, None), *[(2.0, 8.5, 100.0)] * 3]
        run = tables["runs"].row(0, named=True)
        assert (run["warmup_step_time_s"], run["step_time_s"]) == (None, 2.0)

    def test_a_setting_below_its_least_is_not_set(self) -> None:
        config = json.dumps({"zero_optimization": {"stage": 0}, "gradient_accumulation_steps": 0})
        text = "TrainingArguments(\nper_device_train_batch_size=-1,\n)\n{'loss': 2.5, 'learning_rate': 1e-05, 'epoch': 0.01}\n"
        tables = self.check(text, **{"ds_config.json": config})
        run = tables["runs"].row(0, named=True)
        assert (run["gas"], run["mbs"], run["zero_stage"]) == (None, None, 0)
        assert tables["rejects"].sort("column").select("column", "raw").rows() == [("gas", "0"), ("mbs", "-1")]


def test_negative_steps_are_rejected() -> None:
    tables = tables_of({"a.log": log(1, 5).replace("Step: 3 ", "Step: -3").replace("Step: 4 ", "Step: -4")})
    assert tables["steps"]["step"].to_list() == [1, 2, 5]
    assert tables["rejects"].select("file", "line_no", "column", "reason").rows() == [
        ("a.log", 3, "step", "must be at least 0, got -3"),
        ("a.log", 4, "step", "must be at least 0, got -4"),
    ]


def test_steps_logged_again_with_another_loss_are_rejected_once_per_file() -> None:
    again = line(5, loss=3.5) + "\n" + line(5, loss=2.5) + "\n"
    tables = tables_of({"a.log": log(1, 5) + again + log(6, 9), "b.log": log(1, 5) + line(5) + "\n"})
    assert tables["steps"].filter(source_path="a.log")["step"].to_list() == list(range(1, 10))
    assert tables["rejects"].select("file", "line_no", "column", "reason", "raw").rows() == [
        (
            "a.log",
            6,
            "step",
            "the step was logged before; its first values were kept",
            "step 5; 2 such lines in the file",
        )
    ]
