"""Run directories of trainers of one's own: records of each step, a configuration beside them, thin output."""

from __future__ import annotations

import json
import math

import polars as pl
import pytest

from sweepscope.pipeline.ingest.file_kinds import file_kind
from tests.pipeline.ingest_in_memory import tables_of

STEPS = 40

CONFIG = """
model: {name: tiny-3b, dim: 2560, depth: 32, heads: 20, vocab_size: 50304, ffn_dim: 10240}
parallel: {tp: 2, dp: 4, pp: 1, zero: 1}
tensor_parallel: {size: 2}
data: {seq_len: 4096, path: /data/web}
train: {micro_batch_size: 2, global_batch_size: 128, max_steps: 40, precision: bf16}
eval: {seq_len: 512}
"""

OUTPUT = "launching on 1 node(s) with 8 x NVIDIA H100 80GB HBM3\ncompiled the model\ndone\n"


def records() -> str:
    rows = (
        {
            "step": step,
            "train/loss": round(2 + 8 / (1 + step / 4) + math.sin(step * step) / 10, 4),
            "perf/step_time_s": 0.4125,
            "_timestamp": 1_764_000_000 + step * 0.5,
        }
        for step in range(1, STEPS + 1)
    )
    return "".join(f"{json.dumps(row)}\n" for row in rows)


def folder(
    name: str = "run_0", *, config: str = "config.yaml", text: str = CONFIG, output: str = "stdout.log"
) -> dict[str, str]:
    return {f"{name}/metrics.jsonl": records(), f"{name}/{config}": text, f"{name}/{output}": OUTPUT}


def test_records_configuration_and_output_are_one_run() -> None:
    tables = tables_of({**folder("a"), **folder("b", output="train.log")})
    assert tables["runs"].height == 2
    for run in tables["runs"].iter_rows(named=True):
        assert (run["status"], run["steps_logged"], run["step_time_s"]) == ("completed", STEPS, 0.4125)
        layout = [run[name] for name in ("dp", "tp", "pp", "mbs", "gbs", "zero_stage", "num_nodes", "steps_planned")]
        assert layout == [4, 2, 1, 2, 128, 1, 1, STEPS]
        assert (run["model"], run["hidden_size"], run["seq_len"], run["precision"]) == ("tiny-3b", 2560, 4096, "bf16")
        assert run["accelerator"] == "NVIDIA H100 80GB HBM3"
        assert run["started_at"].isoformat() == "2025-11-24T16:00:00.500000"


@pytest.mark.parametrize("config", ["config.json", "train_config.yaml", "args.yml", "hparams.json", "exp.yaml"])
def test_a_configuration_is_known_by_its_name_and_what_it_states(config: str) -> None:
    text = json.dumps({"parallel": {"tp": 2, "dp": 4}, "seq_len": 4096}) if config.endswith("json") else CONFIG
    (run,) = tables_of(folder(config=config, text=text))["runs"].to_dicts()
    assert (run["tp"], run["dp"], run["seq_len"]) == (2, 4, 4096)


def test_a_configuration_of_something_else_states_nothing_and_is_no_run() -> None:
    tables = tables_of({"svc/config.yaml": "port: 8080\nworkers: 4\n", "svc/access.log": "GET / 200\n" * 50})
    assert tables["runs"].is_empty()
    assert tables["settings"].is_empty()


def test_the_same_value_twice_and_two_values_of_one_setting() -> None:
    text = "a: {tp: 2}\nb: {tp: 4}\nseq_len: 4096\nhidden_size: 1024\n"
    (run,) = tables_of(folder(text=text))["runs"].to_dicts()
    assert (run.get("tp"), run["seq_len"]) == (None, 4096)


def test_a_known_trainer_is_not_told_its_layout_by_a_file_that_no_reader_knows() -> None:
    from tests.pipeline.logs.runs.test_assemble import log

    files = {"a/log_1.out": log(1, 4), "a/train_config.yaml": "tp: 64\nseq_len: 77\n"}
    settings = tables_of(files)["settings"]
    assert settings.filter(pl.col("source_path").str.ends_with("yaml")).is_empty()


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("metrics.jsonl", "log"),
        ("train_log.jsonl", "log"),
        ("loss_history.ndjson", "log"),
        ("train.jsonl", "other"),
        ("data.jsonl", "other"),
        ("tokenizer_config.json", "other"),
        ("generation_config.json", "other"),
        ("run_config.toml", "config"),
        ("package.json", "other"),
        ("train.json", "other"),
        ("train.yaml", "config"),
        ("grpo_no_kl_metrics.csv", "log"),
        ("gpu_metrics.csv", "bench_csv"),
        ("eval_metrics.csv", "bench_csv"),
        ("sweep_log.csv", "bench_csv"),
    ],
)
def test_names(name: str, kind: str) -> None:
    assert file_kind(name) == kind


@pytest.mark.parametrize(("name", "separator"), [("log.csv", ","), ("train_log.csv", ";"), ("progress.tsv", "\t")])
def test_a_table_of_steps_is_read_as_the_log_that_it_is(name: str, separator: str) -> None:
    rows = [
        ["step", "loss", "step_time_s"],
        *([str(step), f"{9 / step:.4f}", "0.4125"] for step in range(1, STEPS + 1)),
    ]
    table = "".join(f"{separator.join(row)}\n" for row in rows)
    files = {f"run_0/{name}": table, "run_0/config.yaml": CONFIG, "run_0/train.log": OUTPUT}
    (run,) = tables_of(files)["runs"].to_dicts()
    assert (run["steps_logged"], run["step_time_s"], run["tp"]) == (STEPS, 0.4125, 2)
    assert run["accelerator"] == "NVIDIA H100 80GB HBM3"


def test_records_alone_do_not_say_how_a_run_ended() -> None:
    (run,) = tables_of({"run_0/metrics.jsonl": records()})["runs"].to_dicts()
    assert (run["status"], run["last_step"]) == ("unknown", STEPS)
    (run,) = tables_of({"run_0/metrics.jsonl": records(), "run_0/train.log": "step 3 is late\n"})["runs"].to_dicts()
    assert run["status"] == "truncated"


@pytest.mark.parametrize("header", ["step,loss,tokens_per_s", "epoch,total_steps,loss"])
def test_a_table_named_after_its_run_and_its_metrics_is_read_as_steps(header: str) -> None:
    begin = {"step": "", "epoch": "1,"}[header.split(",", maxsplit=1)[0]]
    rows = [f"{begin}{step},{3 - step / 50:.4f}" for step in range(1, 31)]
    end = ",1500.5" if header.endswith("_s") else ""
    files = {"grpo_no_kl_metrics.csv": "\n".join([header, *(row + end for row in rows)])}
    (run,) = tables_of(files)["runs"].to_dicts()
    assert (run["steps_logged"], run["last_step"], run["last_loss"]) == (30, 30, 2.4)


def test_options_of_the_script_are_those_of_a_run_that_shows_a_bar_alone() -> None:
    bars = "".join(f"\r{n}%|##  | {n}/100 [00:{n:02d}<01:00, 1.00s/it, loss={9 - n / 20:.3f}]" for n in range(1, 60))
    script = "accelerate launch sft.py --model Qwen/Qwen2.5-14B --max-seq-len 8192 --micro-batch-size 2\n"
    (run,) = tables_of({"run/nohup.out": bars + "\n", "run/run.sh": script})["runs"].to_dicts()
    assert (run["seq_len"], run["mbs"], run["model"]) == (8192, 2, "Qwen/Qwen2.5-14B")


def test_an_exception_beside_a_configuration_of_ones_own_is_a_run_that_crashed() -> None:
    died = 'starting\nTraceback (most recent call last):\n  File "a.py", line 1\nRuntimeError: no such shard\n'
    (run,) = tables_of({"runs/3/cout.txt": died, "runs/3/config.yaml": CONFIG})["runs"].to_dicts()
    assert (run["status"], run["tp"], run["seq_len"]) == ("crash", 2, 4096)
    assert tables_of({"runs/3/cout.txt": died})["runs"].is_empty()


@pytest.mark.parametrize("name", ["completions.jsonl", "loss_plot.json", "events.ndjson"])
def test_records_of_something_else_beside_a_log_change_nothing(name: str) -> None:
    log = "".join(f"step {step} loss {9 - step / 10:.4f} time {1 + step % 3 / 100:.2f}s\n" for step in range(1, 31))
    files = {"run_0/train.log": log, "run_0/config.yaml": CONFIG}
    other = '{"prompt": "a", "text": "b"}\n{"prompt": "c", "text": "d"}\n'
    (alone,), (run,) = (tables_of(found)["runs"].to_dicts() for found in (files, {**files, f"run_0/{name}": other}))
    assert (run["last_step"], run["tp"]) == (30, 2) == (alone["last_step"], alone["tp"])


def test_records_of_steps_under_any_name_are_of_the_log_beside_them() -> None:
    log = "".join(f"step {step} loss {9 - step / 10:.4f}\n" for step in range(1, 31))
    steps = "".join(f'{{"step": {n}, "loss": {9 - n / 10:.4f}, "step_time_s": 0.5}}\n' for n in range(1, 31))
    files = {"run_0/train.log": log, "run_0/config.yaml": CONFIG, "run_0/tracked.jsonl": steps}
    (run,) = tables_of(files)["runs"].to_dicts()
    assert (run["last_step"], run["tp"], run["step_time_s"]) == (30, 2, 0.5)
