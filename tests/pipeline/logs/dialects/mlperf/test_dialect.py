"""MLPerf events: which of them are steps, in which unit they count, and what ends a run."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from sweepscope.pipeline.logs.registry import by_name
from tests.pipeline.logs.logs import facts_of, run_of, settings_of, tables_of


def event(key: str, value: object, *, kind: str = "POINT_IN_TIME", ms: int = 1_700_000_000_000, **meta: object) -> str:
    body = {"namespace": "", "time_ms": ms, "event_type": kind, "key": key, "value": value}
    return ":::MLLOG " + json.dumps({**body, "metadata": {"file": "callbacks.py", "lineno": 7, **meta}})


def begin(gbs: int = 16, seq_len: int | None = 128) -> list[str]:
    lines = [
        event("submission_benchmark", "gpt3"),
        event("global_batch_size", gbs),
        event("gradient_accumulation_steps", 4.0),
    ]
    if seq_len:
        lines.append(event("max_sequence_length", seq_len))
    return [*lines, event("run_start", None, kind="INTERVAL_START")]


def stop(status: str = "success") -> str:
    return event("run_stop", None, kind="INTERVAL_END", ms=1_700_000_060_000, status=status)


def stats(counter: float, **values: float) -> str:
    return event("tracked_stats", values, step=counter)


def steps_of(tmp_path: Path, lines: list[str]) -> list[dict[str, Any]]:
    return tables_of(tmp_path, "\n".join(lines) + "\n")["steps"].sort("line_no").to_dicts()


@pytest.mark.parametrize("unit", [16 * 128, 16, 1], ids=["tokens", "samples", "steps"])
def test_the_counter_is_in_the_largest_unit_that_divides_it(tmp_path: Path, unit: int) -> None:
    training = [stats(n * unit, train_step_time=2.5, reduced_train_loss=3.0 - n / 10) for n in (1, 2, 3)]
    steps = steps_of(tmp_path, [*begin(), *training, stop()])
    assert [(s["step"], s["loss"], s["step_time_s"]) for s in steps] == [(1, 2.9, 2.5), (2, 2.8, 2.5), (3, 2.7, 2.5)]
    assert [s["consumed_tokens"] for s in steps] == [2048, 4096, 6144]


def test_names_of_the_step_time_over_the_years(tmp_path: Path) -> None:
    training = [
        stats(16, **{"train_step_timing in s": 1.0}),
        stats(32, train_step_timing=2.0),
        stats(48.0, train_step_time=3.0),
    ]
    assert [s["step_time_s"] for s in steps_of(tmp_path, [*begin(), *training])] == [1.0, 2.0, 3.0]


def test_losses_as_events_of_their_own_count_samples(tmp_path: Path) -> None:
    losses = [event("train_loss", 2.0 / n, samples_count=160 * n, lr=4e-4) for n in (1, 2)]
    steps = steps_of(tmp_path, [*begin(seq_len=None), *losses])
    assert [(s["step"], s["loss"], s["learning_rate"]) for s in steps] == [(10, 2.0, 4e-4), (20, 1.0, 4e-4)]


def test_losses_of_deepcam_count_steps_behind_their_epoch(tmp_path: Path) -> None:
    losses = [event("train_loss", 0.02 / n, epoch_num=n, step_num=842 * n) for n in (1, 2, 3)]
    lines = [*begin(gbs=144, seq_len=None), event("gradient_accumulation_frequency", 1), *losses, stop()]
    run = run_of(tmp_path, "\n".join(lines))
    assert (run["first_step"], run["last_step"], run["steps_logged"], run["last_loss"]) == (842, 2526, 3, 0.02 / 3)


def test_the_schedule_of_bert_is_what_it_plans(tmp_path: Path) -> None:
    lines = [*begin(gbs=448, seq_len=512), event("opt_learning_rate_training_steps", 6365), stop()]
    run = run_of(tmp_path, "\n".join(lines))
    assert (run["steps_planned"], run["status"]) == (6365, "completed")


def test_parameters_and_crops_of_openfold(tmp_path: Path) -> None:
    stated = [event("model_parameters_count", 93229082), event("train_sequence_crop_size", 256)]
    run = run_of(tmp_path, "\n".join([*begin(gbs=144, seq_len=None), *stated, stop()]))
    assert (run["params"], run["seq_len"]) == (93229082, 256)


def test_two_counters_of_one_file_are_of_the_same_steps(tmp_path: Path) -> None:
    lines = begin(seq_len=None)
    for step in range(1, 41):
        lines.append(stats(step, train_step_time=2.0 + step / 100))
        if step % 10 == 0:
            lines.append(event("train_loss", 3.0 - step / 100, samples_count=16 * step))
    run = run_of(tmp_path, "\n".join([*lines, stop()]))
    assert (run["first_step"], run["last_step"], run["steps_logged"], run["last_loss"]) == (1, 40, 40, 2.6)


def test_samples_that_are_no_whole_batches_are_samples_all_the_same(tmp_path: Path) -> None:
    losses = [event("train_loss", 2.0 / n, samples_count=100 * n) for n in (1, 2)]
    assert [s["step"] for s in steps_of(tmp_path, [*begin(), *losses])] == [6, 12]


def test_sums_over_a_block_and_validation_are_no_steps(tmp_path: Path) -> None:
    others = [
        stats(16, throughput=81.0, train_step_time=2.0),
        stats(16, validation_step_time=1.0),
        stats(0, warmup_time=320.0),
        event("eval_accuracy", 2.6, samples_count=16),
    ]
    tables = tables_of(tmp_path, "\n".join([*begin(), *others, stop()]))
    assert tables["steps"].is_empty()
    assert tables["rejects"].is_empty()


def test_throughput_of_blocks_counts_the_steps_where_nothing_else_does(tmp_path: Path) -> None:
    blocks = [stats(16 * n, throughput=2.5) for n in (12, 24, 36)]
    (run,) = tables_of(tmp_path, "\n".join([*begin(), *blocks, stop()]))["runs"].to_dicts()
    assert (run["parser"], run["last_step"], run["tokens_per_s"], run["last_loss"]) == ("mlperf", 36, None, None)


def test_the_size_of_a_block_is_no_counter(tmp_path: Path) -> None:
    lines = begin()
    for block in (1, 2, 3):
        lines.append(stats(12 * block - 1, train_step_time=0.4, reduced_train_loss=3.0 / block))
        lines.append(event("tracked_stats", {"train_step_time": 0.5}, samples_count=12 * 16))
    tables = tables_of(tmp_path, "\n".join([*lines, stop()]))
    assert tables["runs"].height == 1
    assert tables["steps"]["step"].sort().to_list() == [11, 23, 35]


def test_a_step_without_a_batch_size_is_a_reject(tmp_path: Path) -> None:
    tables = tables_of(tmp_path, stats(4096, train_step_time=2.0) + "\n" + stop())
    assert tables["steps"].is_empty()
    assert tables["rejects"]["raw"].to_list() == ["the counter 4096 without a batch size"]


def test_a_cut_event_is_a_reject(tmp_path: Path) -> None:
    cut = stats(32, train_step_time=2.0)[:-3]
    tables = tables_of(tmp_path, "\n".join([*begin(), stats(16, train_step_time=2.0), cut]))
    assert tables["steps"]["step"].to_list() == [1]
    assert tables["rejects"]["raw"].to_list() == [cut]


@pytest.mark.parametrize(("said", "status"), [("success", "completed"), ("aborted", "failed")])
def test_run_stop_says_how_it_ended(tmp_path: Path, said: str, status: str) -> None:
    run = run_of(tmp_path, "\n".join([*begin(), stats(16, train_step_time=2.0), stop(said)]))
    assert run["status"] == status
    assert '"run_stop"' in run["status_evidence"]


def test_begin_and_end_are_the_events_own_times(tmp_path: Path) -> None:
    run = run_of(tmp_path, "\n".join([*begin(), stop()]))
    assert (run["ended_at"] - run["started_at"]).total_seconds() == 60


def test_settings_of_events_system_and_console() -> None:
    system = {"number_of_nodes": "64", "accelerators_per_node": "8", "accelerator_model_name": "NVIDIA H100-SXM5-80GB"}
    text = "\n".join([f":::SYSJSON {json.dumps(system, separators=(',', ':'))}", *begin()])
    said = settings_of("mlperf", text)
    assert (said["num_nodes"], said["gpus_per_node"], said["accelerator"]) == ("64", "8", "NVIDIA H100-SXM5-80GB")
    assert (said["gbs"], said["seq_len"], said["gas"], said["model"]) == ("16", "128", "4.0", "gpt3")
    console = settings_of(
        "mlperf", "Initializing distributed: GLOBAL_RANK: 3, MEMBER: 4/64\n  tensor_model_parallel_size: 4"
    )
    assert console == {"num_gpus": "64", "tp": "4"}


def test_gpus_are_nodes_times_those_of_a_node(tmp_path: Path) -> None:
    system = ':::SYSJSON {"number_of_nodes":"4","accelerators_per_node":"8"}'
    assert run_of(tmp_path, "\n".join([system, *begin(), stop()]))["num_gpus"] == 32


def test_a_prefix_may_stand_before_an_event() -> None:
    steps = facts_of("mlperf", "worker-3: 12: " + stats(16, train_step_time=2.0)).steps
    assert steps["step"].to_list() == [16]


def test_settling_keeps_files_apart() -> None:
    finalize = by_name("mlperf").finalize
    assert finalize is not None
    one = facts_of("mlperf", "\n".join([*begin(), stats(32, train_step_time=1.0)]))
    other = one.map(lambda frame: frame.with_columns(source=frame["source"] + 1))
    small = other.settings.with_columns(value=other.settings["value"].replace("16", "32"))
    both = type(one).concat([one, type(one)(other.steps, small, other.peaks, other.events)])
    assert finalize(both).steps["step"].to_list() == [2, 1]


def test_layout_that_the_events_state(tmp_path: Path) -> None:
    names = ("tensor_parallelism", "pipeline_parallelism", "context_parallelism", "expert_parallelism")
    stated = zip((*names, "micro_batch_size", "global_batch_size"), (4, 2, 1, 8, 2, 64), strict=True)
    events = [
        f':::MLLOG {{"namespace": "", "time_ms": 1, "event_type": "POINT_IN_TIME", "key": "{key}", "value": {value}, '
        '"metadata": {"file": "trainer.py", "lineno": 165}}'
        for key, value in stated
    ]
    run = run_of(tmp_path, "\n".join(["NNODES=4", "GPUS_PER_NODE=8", *events]) + "\n")
    assert [run[name] for name in ("tp", "pp", "cp", "ep", "mbs", "gbs")] == [4, 2, 1, 8, 2, 64]
    assert (run["dp"], run["gas"]) == (4, 8)


def test_layout_of_a_launch_is_in_the_name_of_its_configuration(tmp_path: Path) -> None:
    launch = ":::DLPAL /images/m.sqsh 4711 64 n[1-60],m[2-5] 'unknown' GB200_64x4x480xtp2pp4ep32cp1_mxfp8_full"
    run = run_of(tmp_path, "\n".join([launch, *begin(), stop()]))
    assert [run[name] for name in ("num_nodes", "gpus_per_node", "num_gpus")] == [64, 4, 256]
    assert [run[name] for name in ("tp", "pp", "cp", "ep", "dp")] == [2, 4, 1, 32, 32]
    assert (run["precision"], run["job_id"]) == ("mxfp8", "4711")


def test_an_older_launch_names_no_configuration() -> None:
    said = settings_of("mlperf", ":::DLPAL registry/mlperf:bert 4711 8 n[1-8]")
    assert said == {"num_nodes": "8", "job_id": "4711"}


def test_name_of_a_configuration_and_precision_as_events(tmp_path: Path) -> None:
    named = [
        event("config_filename", "config_MI355X_1x8x1.sh"),
        event("lowest_numerical_precision_linear", "mxfp4"),
        event("micro_batch_size", 2),
        event("global_batch_size", 32),
        event("gradient_accumulation_steps", 2),
    ]
    run = run_of(tmp_path, "\n".join([*named, event("run_start", None), stop()]))
    assert (run["num_gpus"], run["dp"], run["precision"]) == (8, 8, "fp4")


@pytest.mark.parametrize(
    ("platform", "expected"),
    [
        ("gaudi-1024", {"num_gpus": 1024}),
        ("64xNVIDIA DGX H100", {"num_gpus": 512, "num_nodes": 64, "accelerator": "H100"}),
        ("4xMI300X", {"num_nodes": 4, "accelerator": "MI300X", "num_gpus": 32}),
        ("448xNVIDIA HGX H100", {"num_nodes": 448, "num_gpus": 3584}),
        ("1xDGXA100", {"num_gpus": 8}),
        ("2xXE9680x8H100-SXM-80GB", {"num_nodes": 2, "gpus_per_node": 8, "num_gpus": 16}),
        ("1xXE8545x4A100-SXM-80GB", {"num_nodes": 1, "num_gpus": 4, "accelerator": "A100-SXM-80GB"}),
        ("16xSYS-821GE-TNHR_8xH200", {"num_gpus": 128}),
        ("16xXE9712x4GB200", {"num_nodes": 16, "gpus_per_node": 4, "num_gpus": 64}),
        ("BM.GPU.H100.8", {"gpus_per_node": 8, "num_gpus": None}),
        ("2xHGX A100", {"num_gpus": None}),  # there are boards of four and of eight
        ("8xSUBMISSION_PLATFORM_PLACEHOLDER", {"num_nodes": 8}),
        ("MI355X", {"accelerator": "MI355X"}),
        ("tpu-v5p-1024", {"num_gpus": None}),  # of cores, two of which are a chip
        ("tpu-v5l-4096", {"num_gpus": 4096}),
        ("128xNVIDIA GB200", {"num_nodes": 128, "gpus_per_node": 4, "num_gpus": 512}),
        ("1xXE7745x4H200-NVL-141GB", {"num_gpus": 4, "accelerator": "H200-NVL-141GB"}),
        ("64 x NVIDIA A100 GPU", {"num_gpus": 64, "accelerator": "A100"}),
        ("8xA100_80GB-baseline", {"num_gpus": 8, "accelerator": "A100"}),
    ],
)
def test_names_of_platforms(tmp_path: Path, platform: str, expected: dict[str, object]) -> None:
    run = run_of(tmp_path, "\n".join([event("submission_platform", platform), *begin()]))
    assert {name: run.get(name) for name in expected} == expected


@pytest.mark.parametrize(
    "lines",
    [
        [event("number_of_ranks", 64), event("number_of_nodes", 8)],
        [event("number_of_nodes", 8), event("accelerators_per_node", 8)],
        ["+ export DGXNNODES=8", 'declare -x DGXNGPU="8"'],
        [
            "All distributed processes registered. Starting with 64 processes",
            event("submission_platform", "1xDGX H100"),
        ],
    ],
)
def test_where_the_number_of_accelerators_comes_from(tmp_path: Path, lines: list[str]) -> None:
    assert run_of(tmp_path, "\n".join([*lines, *begin()]))["num_gpus"] == 64


def test_a_system_description_beats_the_name_of_its_platform(tmp_path: Path) -> None:
    system = ':::SYSJSON {"number_of_nodes":"2","accelerators_per_node":"4"}'
    run = run_of(tmp_path, "\n".join([system, event("submission_platform", "2xNVIDIA DGX H100"), *begin()]))
    assert (run["num_nodes"], run["gpus_per_node"], run["num_gpus"]) == (2, 4, 8)


def test_shape_and_length_that_the_events_state() -> None:
    events = [
        event("num_layers", 96),
        event("num_heads", 64),
        event("hidden_size", 8192),
        event("sequence_length", 2048),
    ]
    said = settings_of("mlperf", "\n".join([*events, event("ffn_hidden_size", 32768)]))
    assert said == {
        "num_layers": "96",
        "num_heads": "64",
        "hidden_size": "8192",
        "ffn_hidden_size": "32768",
        "seq_len": "2048",
    }


CONSOLE = """\
[20260511 02:59:23][rank-0/8][INFO] [trainer.py:88] : known_args[use_distributed_optimizer] = True
[20260511 02:59:23][rank-0/8][INFO] [trainer.py:88] : known_args[recompute_granularity] = full
[20260511 02:59:23][rank-0/8][INFO] [trainer.py:88] : known_args[fp8] = hybrid
[20260511 02:59:24][rank-7/8][INFO] [utils.py:425] : iteration       10/    1200 | consumed samples:          160 | \
elapsed time per iteration (ms): 1210.5 | throughput per GPU (TFLOP/s/GPU): 410.5 | global batch size:    16 | \
lm loss: 8.250000E+00 | loss scale: 1.0 | number of skipped iterations:   0 |
"""


def test_steps_and_arguments_of_megatron_below(tmp_path: Path) -> None:
    tables = tables_of(tmp_path, "\n".join([*begin(), CONSOLE, stop()]))
    assert list(tables["steps"].select("step", "loss", "step_time_s", "tflops_per_gpu_logged").iter_rows()) == [
        (10, 8.25, 1.2105, 410.5)
    ]
    run = tables["runs"].row(0, named=True)
    assert (run["framework"], run["status"], run["zero_stage"]) == ("mlperf", "completed", 1)
    assert (run["recompute"], run["precision"]) == ("full", "fp8")


def test_steps_of_events_beat_those_of_the_console(tmp_path: Path) -> None:
    steps = steps_of(tmp_path, [*begin(), CONSOLE, stats(16, train_step_time=2.5), stop()])
    assert [(s["step"], s["step_time_s"]) for s in steps] == [(1, 2.5)]
