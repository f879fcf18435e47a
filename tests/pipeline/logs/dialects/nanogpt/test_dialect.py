"""nanoGPT, modded-nanogpt and llm.c lines, and the source code that stands before some of them."""

from __future__ import annotations

from pathlib import Path

import polars as pl
import pytest

from tests.pipeline.logs.logs import facts_of, run_of, settings_of, step_of, step_of_each, tables_of

SOURCE = """\
====================================================================================================
import torch
raise ValueError(f"step:{step}/{args.num_iterations} train_loss:{loss} train_time:{t:.0f}ms step_avg:{t/n:.2f}ms")
print(f'step:{step}/{args.num_iterations} val_loss:{val_loss:.4f} train_time:{t:.0f}ms step_avg:{t/n:.2f}ms')
    except KeyboardInterrupt:
        print(f"iter {iter_num}: loss {lossf:.4f}, time {dt*1000:.2f}ms, mfu {running_mfu*100:.2f}%")
    # CUDA out of memory is no surprise here
====================================================================================================
"""
MODDED = """\
step:0/3 val_loss:10.9000 train_time:200ms step_avg:nanms
step:1/3 train_loss:10.8000 train_time:70000ms step_avg:nanms
step:2/3 train_loss:8.6000 train_time:300ms step_avg:150.50ms
step:3/3 train_loss:7.5000 train_time:450ms step_avg:150.00ms
step:3/3 val_loss:7.4000 train_time:451ms step_avg:150.33ms
"""


def test_modded_file_starts_with_its_source(tmp_path: Path) -> None:
    tables = tables_of(tmp_path, SOURCE + MODDED)
    run = tables["runs"].row(0, named=True)
    assert (run["framework"], run["status"], run["steps_planned"]) == ("nanogpt", "completed", 3)
    assert tables["steps"].select("step", "loss", "step_time_s").rows() == [
        (1, 10.8, None),
        (2, 8.6, None),  # the clock was set back behind the warm-up
        (3, 7.5, 0.15),
    ]
    assert tables["rejects"].is_empty()
    assert tables["events"]["kind"].to_list() == ["training_end"]


def test_modded_line_without_a_loss() -> None:
    row = step_of("nanogpt", "step:17/1390 train_time:1700ms step_avg:100.02ms")
    assert (row["step"], row["steps_planned"], row["loss"]) == (17, 1390, None)


def test_time_of_a_step_is_what_the_clock_moved_by_and_not_the_mean_so_far(tmp_path: Path) -> None:
    clock = [(1, 100), (2, 200), (3, 300), (4, 600), (6, 1200), (7, 90), (8, 390)]
    lines = [f"step:{step}/8 train_time:{ms}ms step_avg:{ms / step:.2f}ms\n" for step, ms in clock]
    lines.insert(4, "step:4/8 val_loss:3.9000 train_time:600ms step_avg:150.00ms\n")
    steps = tables_of(tmp_path, "".join(lines))["steps"]
    expected = [(1, None), (2, 0.1), (3, 0.1), (4, 0.3), (6, 0.3), (7, None), (8, 0.3)]
    found = steps.select("step", pl.col("step_time_s").round(6)).rows()
    assert found == expected
    assert steps["consumed_tokens"].is_null().all()


def test_nanogpt_line() -> None:
    row = step_of("nanogpt", "iter 40: loss 3.9871, time 251.50ms, mfu 17.25%")
    assert (row["step"], row["loss"], row["step_time_s"], row["mfu_logged"]) == (40, 3.9871, 0.2515, 0.1725)


def test_nanogpt_mfu_is_unknown_at_first() -> None:
    row = step_of("nanogpt", "iter 0: loss 10.9871, time 9251.50ms, mfu -100.00%")
    assert (row["step"], row["mfu_logged"]) == (0, None)


def test_llmc_line() -> None:
    row = step_of("nanogpt", "s:12 trl:9.8765 lr:0.000120 norm:1.25")
    assert (row["step"], row["loss"], row["learning_rate"], row["grad_norm"]) == (12, 9.8765, 0.00012, 1.25)


@pytest.mark.parametrize(
    "line", ["iter 40: loss 3.98", "iter 40: loss 3.9871, time 251.", "step:7/9 train_loss:1.5 train_ti"]
)
def test_a_cut_line_is_unparsed(line: str) -> None:
    row = step_of("nanogpt", line)
    assert (row["step"], row["text"]) == (None, line)


@pytest.mark.parametrize("line", ["s:250 tel:3.2", "Epoch 1 | iter 1 step 0 | loss train: 1.6"])
def test_lines_of_other_kinds_are_no_steps(line: str) -> None:
    assert facts_of("nanogpt", line).steps.is_empty()


def test_settings(tmp_path: Path) -> None:
    text = """\
    Overriding: block_size = 1024
    tokens per iteration will be: 491,520
    number of parameters: 123.59M
    """
    assert settings_of("nanogpt", text) == {"seq_len": "1024", "gbs_tokens": "491520", "params": "123590000"}
    assert run_of(tmp_path, text + "iter 1: loss 3.9, time 10.00ms\n")["gbs"] == 480


@pytest.mark.parametrize(
    ("line", "peaks"),
    [
        ("peak memory allocated: 2 MiB reserved: 3 MiB", [2 * 2**20, 3 * 2**20]),
        ("peak memory consumption: 2 MiB", [2 * 2**20]),
    ],
)
def test_peak_memory(line: str, peaks: list[float]) -> None:
    assert facts_of("nanogpt", line).peaks["value"].to_list() == peaks


@pytest.mark.slow
@pytest.mark.parametrize(
    ("line", "expected"),
    [
        (
            "step     7 | loss: 9.955029 | lr 6.0000e-04 | norm: 15.3366 | dt: 281.00ms | tok/sec: 1863800.85",
            (7, None, 9.955029, 0.281, 1863800.85, 15.3366, 6e-4, None),
        ),
        (
            "step    2/18865 | loss 10.909 (-1.20z)| norm 15.22 (+nanz)| lr 8.57e-07 | 340.12 ms | 60.5% bf16 MFU | "
            "1597400 tok/s",
            (2, 18865, 10.909, 0.34012, 1597400.0, 15.22, 8.57e-7, 0.605),
        ),
        (
            "step    3/9536 | train loss 7.909000 | norm 1.2000 | lr 3.60e-04 | (1000.12 ms | 524 tok/s)",
            (3, 9536, 7.909, 1.00012, 524.0, 1.2, 3.6e-4, None),
        ),
    ],
)
def test_lines_with_bars_of_build_nanogpt_and_llm_c(line: str, expected: tuple[object, ...]) -> None:
    names = (
        "step",
        "steps_planned",
        "loss",
        "step_time_s",
        "tokens_per_s",
        "grad_norm",
        "learning_rate",
        "mfu_logged",
    )
    row = step_of("nanogpt", line)
    assert tuple(row[name] for name in names) == expected
    assert step_of("nanogpt", line[: line.index("tok") - 2])["step"] is None


def test_the_validation_of_the_last_step_is_the_end(tmp_path: Path) -> None:
    text = "step:2/4 train_time:309ms step_avg:154.10ms\nstep:{}/4 val_loss:3.2781 train_time:400ms step_avg:95.0ms\n"
    assert run_of(tmp_path, text.format(4))["status"] == "completed"
    assert run_of(tmp_path, text.format(3))["status"] == "truncated"


@pytest.mark.parametrize(
    "line",
    [
        "Epoch 1: loss 3.2, lr 0.001",
        "iter 10: loss 3.2 lr 0.001",
        "step: 20 train_loss: 3.2 val_loss: 3.0",
        "the loss took too much, time to stop",
    ],
)
def test_a_script_of_ones_own_is_not_taken_for_nanogpt(tmp_path: Path, line: str) -> None:
    assert "nanogpt" not in tables_of(tmp_path, f"{line}\n{line}\n")["runs"]["framework"]


def test_nanogpt_before_it_printed_mfu(tmp_path: Path) -> None:
    run = run_of(tmp_path, "iter 1630: loss 4.1863, time 560.94ms\niter 1631: loss 4.0863, time 561.94ms\n")
    assert (run["framework"], run["last_step"], run["last_loss"]) == ("nanogpt", 1631, 4.0863)


@pytest.mark.parametrize("end", ["mfu: 48.25 | total time: 0.05m", "bf16_mfu: 48.25 | epoch: 1 | total time: 0.05m"])
def test_line_of_nanochat(end: str, tmp_path: Path) -> None:
    line = f"step 00011/21400 (0.05%) | loss: 9.0125 | grad norm: 0.125 | lrm: 1.00 | dt: 500.5ms | tok/sec: 1,048,576 | {end}"
    step = step_of("nanogpt", line)
    assert (step["step"], step["steps_planned"], step["loss"], step["step_time_s"]) == (11, 21400, 9.0125, 0.5005)
    assert (step["tokens_per_s"], step["mfu_logged"], step["grad_norm"]) == (1048576.0, 0.4825, 0.125)
    assert step_of("nanogpt", line[:90])["step"] is None
    assert run_of(tmp_path, line + "\n")["framework"] == "nanogpt"


def test_line_of_llama2_c(tmp_path: Path) -> None:
    line = "30 | loss 4.2513 | lr 3.000000e-06 | 812.25ms | mfu 12.50%"
    text = f"{line}\nstep 40: train loss 4.1, val loss 4.3\n{line.replace('30', '40')}\n{line[:-8]}\n"
    tables = tables_of(tmp_path, text)
    found = tables["steps"].select("step", "loss", "step_time_s", "mfu_logged")
    assert found.rows() == [(30, 4.2513, 0.81225, 0.125), (40, 4.2513, 0.81225, 0.125)]
    assert tables["rejects"]["line_no"].to_list() == [4]
    assert tables["runs"]["framework"].to_list() == ["nanogpt"]


LOGGERS = [
    "2024-05-01 12:00:00,123 - INFO - ",
    "2024-05-01 12:00:00,123 - nano.train - INFO - ",
    "2024-05-01 12:00:00,123 INFO train.py:45: ",
    "[2024-05-01 12:00:00] ",
    "[2024-05-01 12:00:00,123][__main__][INFO] - ",
    "2024-05-01 12:00:00.123 | INFO     | __main__:<module>:45 - ",
    "2024-05-01T12:00:00.123456+00:00 ",
    "INFO:root:",
    "INFO:__main__:",
    "root - INFO - ",
    "12:00:00 ",
    "[rank 0] 2024-05-01 12:00:00 [INFO] [4711] ",
]


@pytest.mark.parametrize("logger", LOGGERS)
def test_lines_behind_a_logger_of_ones_own(tmp_path: Path, logger: str) -> None:
    said = [
        "tokens per iteration will be: 491,520",
        "number of parameters: 123.59M",
        "step 40: train loss 4.2107, val loss 4.2504",
        "iter 40: loss 3.9871, time 251.50ms, mfu 17.25%",
        "iter 50: loss 3.8871, time 251.50ms, mfu 17.25%",
        "iter 60: loss 3.7",
    ]
    tables = tables_of(tmp_path, "".join(f"{logger}{line}\n" for line in said))
    run = tables["runs"].row(0, named=True)
    assert (run["framework"], run["params"], run["gbs_tokens"]) == ("nanogpt", 123590000, 491520)
    assert tables["steps"].select("step", "loss", "step_time_s").rows() == [(40, 3.9871, 0.2515), (50, 3.8871, 0.2515)]
    # A time as Docker puts it before every line goes at the front door, as a launcher's prefix does.
    kept = "" if "+00:00" in logger else logger
    assert tables["rejects"]["raw"].to_list() == [kept + said[-1]]
    if "2024-05" in logger:
        assert str(run["started_at"])[:19] == "2024-05-01 12:00:00"


@pytest.mark.slow
@pytest.mark.parametrize(
    "line",
    [
        "step     7 | loss: 9.955029 | lr 6.0000e-04 | norm: 15.3366 | dt: 281.00ms | tok/sec: 1863800.85",
        "step    7/18865 | loss 10.909 (-1.20z)| norm 15.22 (+nanz)| lr 8.57e-07 | 340.12 ms | 60.5% bf16 MFU | 15974 tok/s",
        "step:7/9 train_loss:8.6000 train_time:300ms step_avg:150.50ms",
        "step:7/9 train_time:300ms step_avg:150.50ms",
        "s:7 trl:9.8765 lr:0.000120 norm:1.25",
        "7 | loss 4.2513 | lr 3.000000e-06 | 812.25ms | mfu 12.50%",
        "step 00007/21400 (0.05%) | loss: 9.0125 | grad norm: 0.125 | lrm: 1.00 | dt: 500.5ms | tok/sec: 1,048,576 | mfu: 48.25 | total time: 0.05m",
    ],
)
def test_each_format_is_read_the_same_behind_every_logger(line: str) -> None:
    bare, *logged = step_of_each("nanogpt", [line, *(logger + line for logger in LOGGERS)])
    assert bare["step"] == 7
    assert [{**step, "ts": None, "rank": None} for step in logged] == [bare] * len(LOGGERS)


@pytest.mark.parametrize(
    "line",
    [
        "2024-05-01 12:00:00 epoch 3 iter 40: loss 3.9871, time 251.50ms",
        "2024-05-01 12:00:00 [epoch 3] iter 40: loss 3.9871, time 251.50ms",
        "2024-05-01 12:00:00 [3/9] iter 40: loss 3.9871, time 251.50ms",
        "Epoch: iter 40: loss 3.9871, time 251.50ms",
        'print(f"iter 40: loss 3.9871, time 251.50ms, mfu 17.25%")',
    ],
)
def test_a_prefix_that_is_no_loggers_is_not_taken_off(line: str) -> None:
    assert facts_of("nanogpt", line).steps.is_empty()


def test_config_file_that_is_printed(tmp_path: Path) -> None:
    text = """\
        Overriding config with config/train_shakespeare_char.py:
        batch_size = 64
        block_size = 256 # context of up to 256 previous characters
        n_layer = 6
        learning_rate = 1e-3

        Overriding: batch_size = 32
        iter 0: loss 4.2140, time 500.25ms, mfu -100.00%
    """
    run = run_of(tmp_path, text)
    assert (run["mbs"], run["seq_len"], run["num_layers"]) == (32, 256, 6)


def test_every_process_has_its_own_batch(tmp_path: Path) -> None:
    text = """\
        torchrun --standalone --nproc_per_node=8 train.py config/train_gpt2.py
        Overriding: batch_size = 12
        Overriding: block_size = 1024
        tokens per iteration will be: 491,520
        iter 0: loss 10.9, time 512.25ms, mfu -100.00%
    """
    run = run_of(tmp_path, text)
    assert (run["num_gpus"], run["dp"], run["mbs"], run["gas"], run["gbs"]) == (8, 8, 12, 5, 480)


def test_a_steps_own_time_beats_the_mean() -> None:
    row = step_of("nanogpt", "step:3/3500 train_time:12.842s step_avg:4280.60ms step_time:840.80ms mfu:40.61%")
    assert (row["step"], row["step_time_s"], row["mfu_logged"]) == (3, 0.8408, 0.4061)


def test_gloo_counts_the_other_ranks(tmp_path: Path) -> None:
    text = """\
        [Gloo] Rank 2 is connected to 7 peer ranks. Expected number of connected peer ranks is : 7
        step:1/1490 train_time:66ms step_avg:65.84ms
    """
    run = run_of(tmp_path, text)
    assert (run["num_gpus"], run["dp"]) == (8, 8)


@pytest.mark.parametrize(
    ("used_mib", "num_gpus"),
    [((5_837, 5_837, 3), 2), ((5_837, 3_451, 4), 2), ((3, 533, 533), 2), ((5_837, 35, 533), None)],
)
def test_devices_are_counted_once_all_processes_have_started(
    used_mib: tuple[int, ...], num_gpus: int | None, tmp_path: Path
) -> None:
    rows = "".join(f"| N/A   39C    P0   75W / 700W |  {mib}MiB / 81559MiB |   0%   Default |\n" for mib in used_mib)
    assert run_of(tmp_path, SOURCE + rows + MODDED).get("num_gpus") == num_gpus
