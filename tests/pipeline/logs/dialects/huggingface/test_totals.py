"""Steps, batch, planned steps and step time of trainings that print no step, from what they state of themselves."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.pipeline.logs.logs import run_of, runs_of, settings_of, tables_of

FINAL = (
    "{{'train_runtime': {seconds}, 'train_samples_per_second': {samples}, 'train_steps_per_second': {steps}, "
    "'train_loss': {loss}, 'epoch': {epoch}}}\n"
)
ON_CPU = (
    "[2026-01-02 03:04:05,678] [WARNING] [real_accelerator.py:213:get_accelerator] Setting accelerator to CPU. If you "
    "have GPU or other accelerator, we were unable to detect it.\n"
)


def shown(value: float, version: int) -> str:
    """A number of the dict: version 5 quotes four significant digits."""
    return f"'{value:.4g}'" if version == 5 else str(round(value, 4))


def dict_of(loss: float, epoch: float, version: int = 4, more: str = "") -> str:
    return f"{{'loss': {shown(loss, version)}, 'grad_norm': 1.5, 'epoch': {shown(epoch, version)}{more}}}\n"


def final(
    seconds: float, steps: int, batch: int, loss: float, epoch: float, *, version: int = 4, samples: float = 0
) -> str:
    rates = {"samples": (samples or steps * batch) / seconds, "steps": steps / seconds}
    values = {"seconds": seconds, "loss": loss, "epoch": epoch} | {name: round(rate, 3) for name, rate in rates.items()}
    return FINAL.format(**{name: shown(value, version) for name, value in values.items()})


def training(steps: list[int], total: int, *, per_epoch: int = 400, seconds: float = 60.0, version: int = 4) -> str:
    """A log without bars."""
    dicts = "".join(dict_of(3.0, step / per_epoch, version) for step in steps)
    return dicts + final(seconds, total, 8, 3.0, total / per_epoch, version=version)


def drawn(done: int, total: int, seconds: int) -> str:
    """A redraw of a bar."""
    return f"\r{100 * done // total:3d}%|##        | {done}/{total} [{seconds // 60:02d}:{seconds % 60:02d}<00:20,  2.0s/it]"


def steps_of(directory: Path, text: str) -> list[int]:
    return tables_of(directory, text)["steps"].sort("line_no")["step"].to_list()


def known(run: dict[str, Any], *names: str) -> list[Any]:
    return [run.get(name) for name in names]


@pytest.mark.parametrize("version", [4, 5])
@pytest.mark.parametrize(
    "steps", [[4, 8, 12, 16, 20, 24], [1, 10, 20], [24], [500, 1000, 1500]], ids=["few", "first", "one", "epochs"]
)
def test_epochs_and_speed_tell_the_steps_of_a_log_without_bars(tmp_path: Path, version: int, steps: list[int]) -> None:
    run = run_of(tmp_path, training(steps, max(24, steps[-1]), version=version))
    assert known(run, "first_step", "last_step") == [steps[0], steps[-1]]
    assert run["step_basis"] in (("step",) if version == 5 else ("step", "epoch"))
    assert known(run, "steps_planned", "gbs", "status") == [max(24, steps[-1]), 8, "completed"]


@pytest.mark.parametrize(("decayed", "last"), [(True, 12720), (False, 1272)])
def test_steps_of_a_long_training_whose_speed_is_rounded(tmp_path: Path, decayed: bool, last: int) -> None:
    """Some planned number between 12,713 and 12,728: 1,272 dicts are 10 steps apart, if the training came to its end."""
    rates = [1e-5 * (1 - step / 12720) if decayed else 1e-5 for step in range(10, 12721, 10)]
    dicts = (
        dict_of(3.0, step / 636, more=f", 'learning_rate': {rate}")
        for step, rate in zip(range(10, 12721, 10), rates, strict=True)
    )
    run = run_of(tmp_path, "".join(dicts) + final(15475.849, 12720, 16, 3.0, 20.0))
    assert (run["last_step"], run.get("steps_planned")) == (last, last if decayed else None)


def test_a_bar_that_skips_steps_shows_the_last_one_on_the_line_of_the_final_dict(tmp_path: Path) -> None:
    text = drawn(0, 20, 0) + drawn(17, 20, 1) + "\n" + dict_of(3.0, 0.05) + drawn(20, 20, 1) + "\r   \r"
    text += final(1.0, 20, 4, 3.0, 0.05) + drawn(20, 20, 1) + drawn(20, 20, 1) + "\n"
    assert steps_of(tmp_path, text) == [20]


@pytest.mark.parametrize("version", [4, 5])
def test_steps_of_a_training_that_was_taken_up_again(tmp_path: Path, version: int) -> None:
    run = run_of(tmp_path, training([50, 75, 100, 125], 140, version=version))
    assert known(run, "first_step", "last_step") == [50, 125]


def test_where_nothing_tells_the_steps_they_are_ordinal(tmp_path: Path) -> None:
    dicts = "".join(f"{{'loss': {loss}, 'learning_rate': 1e-05, 'epoch': 0.5}}\n" for loss in (3.0, 2.5, 2.0))
    run = run_of(tmp_path, "  Total optimization steps = 3\n" + dicts)
    assert known(run, "last_step", "step_basis", "status") == [3, "ordinal", "truncated"]


def test_a_dict_need_not_hold_the_epoch(tmp_path: Path) -> None:
    text = (
        "{'loss': 3.0, 'learning_rate': 1e-05}\n"
        + drawn(2, 4, 1)
        + "\n{'grad_norm': 1.5, 'loss': 2.0}\n"
        + drawn(4, 4, 2)
    )
    assert steps_of(tmp_path, text + "\n") == [2, 4]


@pytest.mark.parametrize("version", [4, 5])
def test_mean_step_time_of_the_whole_training(tmp_path: Path, version: int) -> None:
    run = run_of(tmp_path, training([4, 8, 12, 16, 20, 24], 24, seconds=22.86, version=version))
    assert known(run, "step_time_s", "step_time_basis") == [0.9525, "whole_run"]


def test_a_training_that_went_on_from_a_checkpoint_states_no_step_time(tmp_path: Path) -> None:
    text = dict_of(3.0, 0.16) + dict_of(3.0, 0.2) + final(20.0, 24, 8, 0.9, 0.24)
    assert known(run_of(tmp_path, text), "step_time_s", "gbs") == [None, 8]


def test_a_training_that_stopped_early_took_fewer_steps_than_planned(tmp_path: Path) -> None:
    bars = drawn(0, 100, 0) + drawn(10, 100, 9) + "\n"
    text = bars + dict_of(3.0, 0.1) + drawn(10, 100, 9) + drawn(20, 100, 19) + "\n" + dict_of(3.0, 0.2)
    text += drawn(20, 100, 19) + "\n" + final(20.0, 100, 8, 3.0, 0.2) + drawn(20, 100, 20) + "\n"
    assert known(run_of(tmp_path, text), "steps_planned", "last_step", "step_time_s") == [100, 20, 1.0]


def test_the_table_of_the_metrics_tells_the_same(tmp_path: Path) -> None:
    table = """\
        ***** train metrics *****
          epoch                    =     0.0623
          total_flos               =      137GF
          train_loss               =        3.0
          train_runtime            = 0:00:21.38
          train_samples_per_second =      8.979
          train_steps_per_second   =      1.122
    """
    lines = "\n".join(line[8:] for line in table.splitlines())
    run = run_of(
        tmp_path, dict_of(3.0, 0.02078, 5) + dict_of(3.0, 0.04156, 5) + dict_of(3.0, 0.06234, 5) + lines + "\n"
    )
    assert known(run, "steps_planned", "last_step", "gbs", "status") == [24, 24, 8, "completed"]
    assert run["step_time_s"] == pytest.approx(21.385 / 24, rel=1e-3)


def test_tokens_seen_tell_the_throughput_and_the_tokens_of_a_step(tmp_path: Path) -> None:
    seen = ", 'num_input_tokens_seen': {}"
    dicts = "".join(dict_of(3.0, step / 400, 5, seen.format(1024 * step)) for step in (4, 8, 12))
    run = run_of(tmp_path, dicts + final(24.0, 12, 4, 3.0, 0.03, version=5))
    assert known(run, "gbs_tokens", "gbs", "seq_len", "tokens_per_s") == [1024, 4, 256, 512.0]


def test_tokens_of_padded_batches_are_no_size_of_a_batch(tmp_path: Path) -> None:
    seen = ", 'num_tokens': '{}'"
    dicts = "".join(dict_of(3.0, n / 400, 5, seen.format(tokens)) for n, tokens in ((4, 206), (8, 435), (12, 650)))
    run = run_of(tmp_path, dicts + final(26.0, 12, 4, 3.0, 0.03, version=5))
    assert known(run, "gbs_tokens", "seq_len", "tokens_per_s") == [None, None, 25.0]


def test_four_digits_of_a_long_run_time_are_no_step_times(tmp_path: Path) -> None:
    total = ", 'num_tokens': '{:.4g}', 'train_runtime': '{:.4g}'"
    dicts = [
        dict_of(3.0, n / 1e4, 5, total.format(1000.0 * n, 20_000 + 2.0 * n)) + drawn(n, 9000, 9) for n in range(1, 400)
    ]
    steps = tables_of(tmp_path, "\n".join(dicts) + "\n")["steps"].drop_nulls("step_time_s")
    assert steps["step_time_s"].is_between(1.9, 2.1).all()
    assert 1 <= steps.height <= 3
    assert steps["tokens_per_s"].drop_nulls().is_between(480, 520).all()


def test_bars_time_the_steps_between_dicts(tmp_path: Path) -> None:
    text = "".join(
        drawn(step, 60, 3 * step) + "\n" + dict_of(3.0, step / 400) + drawn(step, 60, 3 * step)
        for step in (20, 25, 40, 60)
    )
    steps = tables_of(tmp_path, text + "\n")["steps"]
    assert steps.select("step", "step_time_s").rows() == [(20, None), (25, None), (40, 3.0), (60, 3.0)]


def test_the_bar_tells_the_planned_steps(tmp_path: Path) -> None:
    prepared = drawn(0, 500, 0) + drawn(500, 500, 40) + "\n"
    logged = drawn(4, 60, 1) + "\n" + dict_of(3.0, 0.01) + drawn(4, 60, 1) + drawn(3, 7, 1) + drawn(5, 60, 9) + "\n"
    assert known(run_of(tmp_path, prepared + logged), "steps_planned", "last_step") == [60, 4]


def test_a_bar_that_stops_before_the_first_dict_tells_the_planned_steps(tmp_path: Path) -> None:
    warned = "/opt/transformers/training_args.py:9: FutureWarning: x\n"
    bars = drawn(0, 500, 0) + drawn(500, 500, 40) + "\n" + drawn(0, 24, 0)
    assert known(run_of(tmp_path, warned + bars + "\n"), "steps_planned", "first_step") == [24, None]
    both = drawn(3, 24, 9) + drawn(2, 7, 1)
    assert "steps_planned" not in run_of(tmp_path, warned + both + "\n")


def test_trainings_one_behind_the_other_are_told_apart_by_their_ends(tmp_path: Path) -> None:
    def one(total: int, loss: float) -> str:
        drawn_at = {step: drawn(step, total, step) for step in (0, 5, 10)}
        logged = [drawn_at[step] + "\n" + dict_of(loss - step / 10, step / 400) + drawn_at[step] for step in (5, 10)]
        ended = final(10.0, total, 4, loss - 0.75, total / 400)
        return drawn_at[0] + "".join(logged) + "\n" + ended + drawn_at[10] + "\n"

    tables = tables_of(tmp_path, one(10, 9.0) + one(12, 7.0) + one(10, 5.0))
    assert tables["steps"].sort("line_no")["step"].to_list() == [5, 10] * 3
    assert tables["runs"].sort("attempt")["steps_planned"].to_list() == [10, 12, 10]


@pytest.mark.parametrize(
    ("name", "batch", "layout"),
    [
        ("bs4_ga1", 4, (4, 1, 1)),
        ("bs2_ga2", 4, (2, 2, 1)),
        ("bs2_ddp2", 2, (2, 1, 1)),  # a promise that the launcher did not keep
        ("bs512", 8, (None, None, None)),
    ],
)
def test_the_name_and_the_measured_batch_tell_the_layout_of_one_process(
    tmp_path: Path, name: str, batch: int, layout: tuple[int | None, ...]
) -> None:
    (tmp_path / name).mkdir()
    text = ON_CPU + dict_of(3.0, 0.01) + dict_of(3.0, 0.02) + final(9.5, 8, batch, 3.0, 0.02)
    run = run_of(tmp_path / name, text)
    assert (*known(run, "mbs", "gas"), run.get("dp") if layout[0] else None) == layout
    assert known(run, "accelerator", "num_gpus") == ["CPU", 1]


def test_a_named_batch_may_be_that_of_all_processes(tmp_path: Path) -> None:
    (tmp_path / "bs64").mkdir()
    text = dict_of(3.0, 0.01) + dict_of(3.0, 0.02) + final(9.5, 8, 64, 3.0, 0.02)
    assert known(run_of(tmp_path / "bs64", text), "gbs", "mbs", "num_gpus") == [64, None, None]


def test_ranks_that_warn_are_the_processes(tmp_path: Path) -> None:
    warned = "[rank{}]:[W1123 01:47:43.259950681 reducer.cpp:1529] Warning: find_unused_parameters=True was specified\n"
    begin = "/opt/transformers/training_args.py:9: FutureWarning: x\n  0%|          | 0/24 [00:00<?, ?it/s]"
    texts = [begin + "".join(warned.format(rank) for rank in ranks) for ranks in ((0, 1), (0,), (0, 3))]
    assert [run.get("num_gpus") for run in runs_of(tmp_path, texts)] == [2, None, None]


@pytest.mark.parametrize(
    ("line", "found"),
    [
        ("+ accelerate launch --num_processes=8 sft.py", {"num_gpus": "8"}),
        ("+ accelerate launch --num-processes 8 sft.py", {"num_gpus": "8"}),
        ("    --num_processes 16 \\", {"num_gpus": "16"}),
        ("\t`--num_processes` was set to a value of `4`", {"num_gpus": "4"}),
        ("\t`--num_processes` was set to a value of `0`", {"arg:no_accelerator": "0"}),
        (
            "subprocess.CalledProcessError: Command '['/opt/python3', 'sft.py', '--max_length', '128', '--max_steps', '12', "
            "'--per_device_train_batch_size', '2', '--bf16', 'False']' returned non-zero exit status 1.",
            {"seq_len": "128", "steps_planned": "12", "mbs": "2", "arg:bf16": "False"},
        ),
    ],
)
def test_launch_lines(line: str, found: dict[str, str]) -> None:
    assert settings_of("hf-trainer", line) == found


def test_a_trainer_that_never_began_is_known_by_its_traceback(tmp_path: Path) -> None:
    text = (
        "\t`--num_processes` was set to a value of `0`\nTraceback (most recent call last):\n"
        '  File "/opt/lib/transformers/trainer.py", line 195, in <module>\nImportError: no module named x\n'
    )
    run = run_of(tmp_path, text)
    assert known(run, "framework", "status", "num_gpus", "accelerator") == ["hf-trainer", "crash", 1, "CPU"]


def test_a_first_step_of_its_own_has_an_epoch_that_is_rounded_to_none(tmp_path: Path) -> None:
    """Steps 1, 20, 40, .. 1960 of 1,972, by a rate that fits 1,968 to 1,981: neither total nor interval is printed."""
    steps = [1, *range(20, 1961, 20)]
    dicts = (
        f"{{'loss': 3.0, 'learning_rate': {1e-4 * (1 - step / 1972)}, 'epoch': {round(step / 1972, 2)}}}\n"
        for step in steps
    )
    run = run_of(tmp_path, "".join(dicts) + final(14003.7762, 1972, 1920, 3.0, 1.0))
    assert known(run, "first_step", "last_step", "step_basis") == [1, 1960, "step"]
    assert run["step_time_s"] == pytest.approx(14003.7762 / 1972, rel=0.01)


def test_a_training_that_logged_each_step_was_to_take_as_many(tmp_path: Path) -> None:
    dicts = (dict_of(3.0, step / 90, more=f", 'learning_rate': {(900 - step) / 1e7}") for step in range(1, 901))
    run = run_of(tmp_path, "".join(dicts) + final(11174.986, 900, 32, 3.0, 10.0))
    assert known(run, "last_step", "steps_planned") == [900, 900]


def test_a_bar_of_as_many_steps_as_the_final_totals_come_to_is_the_trainings(tmp_path: Path) -> None:
    """Too few steps for a dict; bars of what came before have another total."""
    loading = "".join(drawn(done, 2, done) for done in range(3)) + "\n"
    bars = "".join(drawn(done, 6, 157 * done) for done in range(7)) + "\n"
    run = run_of(tmp_path, loading + bars + final(943.6118, 6, 64, 0.5, 0.1))
    assert known(run, "last_step", "steps_planned") == [6, 6]


@pytest.mark.parametrize(
    ("line", "model"),
    [
        ("Loading base model: acme/Tiny-1.5B-Instruct", "Tiny-1.5B-Instruct"),
        ("2026-01-01 10:00:00 - INFO - Base model  : acme/Tiny-7B...", "Tiny-7B"),
        ("Loading reward model: acme/Judge-8B", None),
        ("model: out/checkpoint-900", None),
    ],
)
def test_a_script_states_its_model_by_the_name_on_the_hub(tmp_path: Path, line: str, model: str | None) -> None:
    run = run_of(tmp_path, f"{line}\n" + training([4, 8, 12, 16, 20, 24], 24))
    assert run.get("model") == model


def test_a_script_that_fails_before_its_training_is_a_launch_of_its_own(tmp_path: Path) -> None:
    """Appended to one log: a training that was cut off, a launch without a training, and one that was trained."""

    def begun(hour: int) -> str:
        dump = "Training/evaluation parameters TrainingArguments(\nper_device_train_batch_size=8,\nseed=42,\n)\n"
        return f"01/15/2026 {hour:02d}:00:00 - INFO - __main__ - {dump}"

    training_begins = "[INFO|trainer.py:2123] 2026-01-15 {:02d}:01:00,000 >> ***** Running training *****\n"
    failed = "Traceback (most recent call last):\nFileNotFoundError: no checkpoint\n"
    first = begun(9) + training_begins.format(9) + dict_of(3.0, 0.01) + dict_of(2.5, 0.02)
    last = begun(11) + training_begins.format(11) + training([4, 8, 12, 16, 20, 24], 24)
    runs = tables_of(tmp_path, first + begun(10) + failed + last)["runs"].sort("attempt")
    assert runs["status"].to_list() == ["truncated", "crash", "completed"]
    assert runs["last_step"].is_null().to_list() == [False, True, False]


def test_the_launcher_of_deepspeed_does_not_say_what_it_launched(tmp_path: Path) -> None:
    """Interrupted behind the only dict."""
    engine = "[2026-02-20 20:25:29,320] [INFO] [config.py:1000:print]   "
    head = "[2026-02-20 20:25:08,345] [INFO] [launch.py:164:main] dist_world_size=6\nDeepSpeedEngine configuration:\n"
    sizes = f"{engine}train_batch_size ............. 1536\n{engine}train_micro_batch_size_per_gpu  16\n"
    step = "[2026-02-20 20:25:30,000] [INFO] [logging.py:96:log_dist] [Rank 0] step=0, skipped=0, lr=[5e-06], mom=[(0.9, 0.999)]\n"
    killed = "[2026-02-20 20:27:13,861] [INFO] [launch.py:319:sigkill_handler] Killing subprocess 1\n" * 6
    run = run_of(tmp_path, head + sizes + step + dict_of(0.6931, 0.01) + killed)
    assert known(run, "parser", "last_step", "mbs", "gbs") == ["hf-trainer", 1, 16, 1536]


@pytest.mark.parametrize(
    ("line", "stage"),
    [
        ("Stage 3 initialize beginning", 3),
        ("[INFO] [logging.py:96:log_dist] [Rank 0] Creating torch.bfloat16 ZeRO stage 2 optimizer", 2),
        ("Stage 3 of the curriculum", None),
    ],
)
def test_the_engine_of_deepspeed_states_its_stage(tmp_path: Path, line: str, stage: int | None) -> None:
    run = run_of(tmp_path, f"{line}\n" + training([4, 8, 12, 16, 20, 24], 24))
    assert run.get("zero_stage") == stage
