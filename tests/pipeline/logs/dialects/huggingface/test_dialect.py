"""transformers' log dicts and the steps they belong to; axolotl's additions."""

from __future__ import annotations

import ast
import pprint
import textwrap
from collections.abc import Callable
from pathlib import Path

import polars as pl
import pytest

from sweepscope.pipeline.logs.engine import extract
from sweepscope.pipeline.logs.registry import DIALECTS
from sweepscope.pipeline.text import lines
from tests.pipeline.logs.logs import facts_of, run_of, runs_of, settings_of, tables_of

BEGIN = "***** Running training *****\n  Instantaneous batch size per device = 2\n  Total optimization steps = {}\n"


def dict_of(loss: float, more: str = "") -> str:
    return f"{{'loss': {loss}, 'grad_norm': 1.5, 'learning_rate': 2e-05, 'epoch': 0.1{more}}}\n"


def bar(done: int, total: int) -> str:
    return f"{100 * done // total:3d}%|##        | {done}/{total} [00:10<00:20,  2.0s/it]\n"


def steps_of(directory: Path, text: str) -> list[tuple[int, float]]:
    return list(tables_of(directory, text)["steps"].sort("line_no").select("step", "loss").iter_rows())


def test_the_bar_behind_a_dict_is_its_step(tmp_path: Path) -> None:
    text = BEGIN.format(30) + bar(9, 30) + dict_of(3.0) + bar(10, 30) + bar(15, 30) + dict_of(2.0) + bar(20, 30)
    assert steps_of(tmp_path, text) == [(10, 3.0), (20, 2.0)]


def test_bars_that_were_overwritten(tmp_path: Path) -> None:
    text = BEGIN.format(4) + bar(0, 4) + "".join(dict_of(loss) for loss in (4.0, 3.0, 2.0, 1.0)) + bar(4, 4)
    assert steps_of(tmp_path, text) == [(1, 4.0), (2, 3.0), (3, 2.0), (4, 1.0)]


def test_no_bar_at_all_but_logging_steps(tmp_path: Path) -> None:
    text = "TrainingArguments(\nlogging_steps=5,\n)\n" + BEGIN.format(10) + dict_of(3.0) + dict_of(2.0)
    assert steps_of(tmp_path, text) == [(5, 3.0), (10, 2.0)]


def test_an_evaluation_within_has_its_own_bar(tmp_path: Path) -> None:
    text = BEGIN.format(30) + dict_of(3.0) + bar(10, 30) + bar(3, 7) + dict_of(2.0) + bar(5, 7) + bar(20, 30)
    assert steps_of(tmp_path, text) == [(10, 3.0), (20, 2.0)]


def test_carriage_returns_and_a_dict_glued_to_its_bar(tmp_path: Path) -> None:
    drawn = "\r".join(bar(n, 3).rstrip("\n") for n in (0, 1))
    text = BEGIN.format(3) + drawn + dict_of(3.0) + bar(1, 3) + dict_of(2.0).rstrip("\n") + "\r" + bar(2, 3)
    assert steps_of(tmp_path, text) == [(1, 3.0), (2, 2.0)]


def test_quoted_numbers_of_version_5(tmp_path: Path) -> None:
    text = (
        BEGIN.format(1) + "{'loss': '2.5', 'grad_norm': '1.25', 'learning_rate': '5e-05', 'epoch': '0.5'}\n" + bar(1, 1)
    )
    step = tables_of(tmp_path, text)["steps"].row(0, named=True)
    assert (step["step"], step["loss"], step["grad_norm"], step["learning_rate"]) == (1, 2.5, 1.25, 5e-05)


def test_running_totals_become_rates(tmp_path: Path) -> None:
    total = ", 'num_input_tokens_seen': {}, 'train_runtime': {}, 'train_tokens_per_second': 100.0"
    text = BEGIN.format(2) + dict_of(3.0, total.format(1000, 50.0)) + bar(1, 2) + dict_of(2.0, total.format(2000, 54.0))
    first, second = tables_of(tmp_path, text)["steps"].sort("step").rows(named=True)
    assert first["step_time_s"] is None
    assert (second["step_time_s"], second["tokens_per_s"], second["consumed_tokens"]) == (4.0, 250.0, 2000)


@pytest.mark.parametrize("end", ["{'loss': 2.5, 'gra", "{'loss': 2.", "{'loss': 2.5, 'epoch': 0.1"])
def test_a_cut_dict_is_a_reject(tmp_path: Path, end: str) -> None:
    tables = tables_of(tmp_path, BEGIN.format(9) + dict_of(3.0) + bar(1, 9) + end)
    assert tables["steps"].height == 1
    assert tables["rejects"]["raw"].to_list() == [end]


@pytest.mark.slow
def test_it_does_not_matter_where_a_file_is_cut() -> None:
    text = BEGIN.format(30) + "".join(bar(n, 30) + dict_of(n / 8) + bar(n, 30) for n in range(10, 31, 10))
    rows = text.splitlines(keepends=True)
    whole = extract.extract(lines.split(0, text.encode()), DIALECTS).facts.steps
    assert whole["step"].to_list() == [10, 20, 30]
    for cut in range(1, len(rows)):
        parts = [("".join(rows[:cut]), 1), ("".join(rows[cut:]), cut + 1)]
        blocks = [lines.split(0, part.encode(), first) for part, first in parts]
        merged = extract.merge([extract.extract(block, DIALECTS, partial=[0]) for block in blocks], DIALECTS)
        assert merged.facts.steps.equals(whole)


def test_the_final_dict_completes_a_run(tmp_path: Path) -> None:
    final = (
        "{'train_runtime': 9.5, 'train_samples_per_second': 1.5, 'train_steps_per_second': 0.5, 'train_loss': 2.5}\n"
    )
    run = run_of(
        tmp_path, BEGIN.format(3) + dict_of(3.0) + bar(1, 3) + final * 4 + "Traceback (most recent call last):\n"
    )
    assert (run["status"], run["framework"], run["steps_logged"]) == ("completed", "hf-trainer", 1)


def test_settings() -> None:
    text = (
        BEGIN.format(100)
        + "  Gradient Accumulation steps = 4\n"
        + "[2021-01-02 03:04:05,678] [INFO] [config.py:752:print]   world_size ................... 8\n"
        + "[2021-01-02 03:04:05,678] [INFO] [config.py:752:print]   zero_optimization_stage ...... 2\n"
    )
    found = settings_of("hf-trainer", text)
    assert found == {"mbs": "2", "gas": "4", "steps_planned": "100", "num_gpus": "8", "zero_stage": "2"}


@pytest.mark.parametrize(
    ("line", "workers"),
    [
        ("TrainingArguments(bf16=True, dataloader_num_workers=0, max_steps=100,)\n", "0"),
        ("dataloader_num_workers=4,\n", "4"),
        ("+ torchrun train.py --dataloader_num_workers 8 --per_device_train_batch_size 2\n", "8"),
    ],
)
def test_workers_that_load_data(line: str, workers: str) -> None:
    assert settings_of("hf-trainer", BEGIN.format(100) + line)["data_workers"] == workers


def test_axolotl_reports_memory_in_gibibytes() -> None:
    text = (
        "[2024-01-02 03:04:05,678] [INFO] [axolotl.callbacks.on_step_end:128] [PID:1] [RANK:0] GPU memory usage while "
        "training: 1.500GB (+2.500GB cache, +0.5GB misc)\n"
    )
    peaks = dict(facts_of("axolotl", text).peaks.select("name", "value").iter_rows())
    assert peaks == {"mem_peak_reserved_bytes": 4.0 * 2**30}  # 1.5 are left after the step, which is no peak
    block = lines.split(0, (text + BEGIN.format(3)).encode())
    assert extract.extract(block, DIALECTS).dialect_of == {0: "axolotl"}


def test_a_source_keeps_to_itself() -> None:
    texts = (BEGIN.format(9) + dict_of(3.0) + bar(3, 9), BEGIN.format(9) + dict_of(2.0) + bar(6, 9))
    block = lines.split_many([(n, text.encode(), 1) for n, text in enumerate(texts)])
    steps = extract.extract(block, DIALECTS).facts.steps
    assert steps.sort("source").select("source", "step").rows() == [(0, 3), (1, 6)]
    assert steps["text"].null_count() == steps.height == 2
    assert steps.schema["step"] == pl.Int64


def test_a_bar_that_is_not_drawn_again_behind_its_dict(tmp_path: Path) -> None:
    text = BEGIN.format(3) + "".join(bar(n, 3) + dict_of(4.0 - n) for n in (1, 2, 3))
    assert steps_of(tmp_path, text) == [(1, 3.0), (2, 2.0), (3, 1.0)]


def of_blocks(logged: list[int], total: int, *, sizes: list[int]) -> str:
    """Bars as they are drawn, each logged one twice, and the dicts in blocks, as a buffer gives them; the last is cut."""
    log, waiting, at, left = bar(0, total), "", 0, iter(sizes)
    size = next(left)
    for step in range(1, total + 1):
        log += bar(step, total)
        if step in logged:
            at += 1
            waiting += f"{{'loss': '{10 - step / 10:.4g}', 'grad_norm': '1.5', 'epoch': '{step / 50:.4g}'}}\n"
            log += bar(step, total)
        if at == size:
            log, waiting, at, size = log + waiting, "", 0, next(left, total)
    return log


@pytest.mark.parametrize(
    ("logged", "sizes"),
    [([2, 4, 6, 8, 10, 12], [6]), ([1, 5, 10], [3]), ([3, 6, 9, 12], [2, 2]), ([2, 4, 6, 8, 10, 12], [4])],
)
def test_dicts_that_a_buffer_kept_until_later(tmp_path: Path, logged: list[int], sizes: list[int]) -> None:
    log = of_blocks(logged, 12, sizes=sizes)
    is_whole = sum(sizes) == len(logged)
    if is_whole:
        log += (
            bar(12, 12) + "{'train_runtime': 5.0, 'train_samples_per_second': 9.6, 'train_loss': 9.0, 'epoch': 0.24}\n"
        )
    assert [step for step, _ in steps_of(tmp_path, log)] == logged[: sum(sizes)]
    assert [loss for _, loss in steps_of(tmp_path, log)] == [10 - step / 10 for step in logged[: sum(sizes)]]


def test_dicts_of_steps_too_fast_for_a_bar_twice_are_placed_by_their_epochs(tmp_path: Path) -> None:
    dicts = "".join(f"{{'loss': '5.0', 'grad_norm': '1.5', 'epoch': '{step / 100:.4g}'}}\n" for step in range(1, 301))
    bars = "".join(bar(step, 300) for step in range(301))
    end = (
        "{'train_runtime': '15.0', 'train_samples_per_second': '80', 'train_steps_per_second': '20', "
        "'train_loss': '5.0', 'epoch': '3'}\n"
    )
    first, rest = dicts[: dicts.index("'0.97'")].rpartition("\n")[0] + "\n", dicts
    log = bars[: bars.index(" 110/300")].rpartition("\n")[0] + "\n" + first
    log += bars[len(log) - len(first) :] + rest[len(first) :] + end
    assert [step for step, _ in steps_of(tmp_path, log)] == list(range(1, 301))


def test_llama_factorys_copy_of_a_dict_is_not_another_step(tmp_path: Path) -> None:
    echo = "[INFO|callbacks.py:312] 2024-05-01 10:00:05,123 >> {{'loss': {:.4f}, 'learning_rate': 2.0000e-05, 'epoch': 0.10}}\n"
    text = BEGIN.format(2) + "".join(echo.format(x) + dict_of(x) + bar(n, 2) for n, x in ((1, 3.00001), (2, 2.00001)))
    assert steps_of(tmp_path, text) == [(1, 3.00001), (2, 2.00001)]
    assert steps_of(tmp_path, BEGIN.format(2) + echo.format(3.0) + echo.format(2.0)) == [(1, 3.0), (2, 2.0)]


@pytest.mark.parametrize(
    "line",
    [
        '{{"loss": {}, "learning_rate": 5e-05, "epoch": 0.25, "step": {}}}\n',
        "{{'loss': {}, 'learning_rate': 5e-05, 'epoch': 0.25, 'total_flos': 1000, 'step': {}}}\n",
        "{{'loss': {}, 'memory(GiB)': 10.5, 'epoch': 0.01, 'global_step/max_steps': '{}/1000', 'percentage': '25.00%'}}\n",
    ],
)
def test_dicts_that_say_their_step(tmp_path: Path, line: str) -> None:
    assert steps_of(tmp_path, line.format(3.0, 500) + line.format(2.0, 1000)) == [(500, 3.0), (1000, 2.0)]


def test_ms_swift_says_the_last_step_too(tmp_path: Path) -> None:
    line = "{{'loss': 2.0, 'epoch': 0.01, 'global_step/max_steps': '{}/4', 'percentage': '25.00%'}}\n"
    assert run_of(tmp_path, line.format(1) + line.format(4))["status"] == "completed"


def test_the_trainers_goodbye_is_an_end(tmp_path: Path) -> None:
    goodbye = "\n\nTraining completed. Do not forget to share your model on huggingface.co/models =)\n\n"
    assert run_of(tmp_path, BEGIN.format(9) + dict_of(3.0) + goodbye)["status"] == "completed"


def test_under_deepspeed_the_trainer_keeps_its_losses(tmp_path: Path) -> None:
    text = """\
        [2023-04-14 16:42:21,769] [INFO] [launch.py:247:main] dist_world_size=8
        [2023-04-14 16:42:31,000] [INFO] [config.py:956:print] DeepSpeedEngine configuration:
        [2023-04-14 16:43:00,935] [INFO] [logging.py:96:log_dist] [Rank 0] step=10, skipped=0, lr=[0.0001], mom=[(0.9, 0.999)]
        [2023-04-14 16:43:00,936] [INFO] [timer.py:215:stop] epoch=0/micro_step=10/global_step=10, \
RunningAvgSamplesPerSec=220.5, CurrSamplesPerSec=222.5, MemAllocated=0.07GB, MaxMemAllocated=1.36GB
        {'loss': 2.5, 'learning_rate': 1e-05, 'epoch': 0.1}
    """
    run = run_of(tmp_path, text)
    assert (run["framework"], run["last_loss"], run["num_gpus"]) == ("hf-trainer", 2.5, 8)


def test_memory_that_axolotl_of_2025_reports(tmp_path: Path) -> None:
    text = """\
        [2025-05-19 17:04:03,372] [INFO] [axolotl.utils.models.log_gpu_memory_usage:107] [PID:9] [RANK:0] \
cuda memory usage while training: 2.500GB (+1.250GB cache, +0.794GB misc)
        {'loss': 2.5, 'learning_rate': 1e-05, 'epoch': 0.1}
    """
    run = run_of(tmp_path, text)
    assert (run["framework"], run["mem_peak_reserved_bytes"]) == ("axolotl", int(3.75 * 2**30))


def test_ms_swift_states_step_and_peak_in_either_spelling(tmp_path: Path) -> None:
    line = "{'loss': 0.5, 'epoch': 0.1, 'global_step/max_steps': '7/90', 'memory(GiB)': 2.5}\n"
    text = line + line.replace("7/", "8/").replace("'", '"')
    steps = tables_of(tmp_path, text)["steps"].select("step", "mem_reserved_bytes")
    assert steps.rows() == [(7, 5 * 2**29), (8, 5 * 2**29)]


@pytest.mark.parametrize(
    "line",
    [
        "[INFO|2025-06-01 10:00:00] llamafactory.hparams.parser:401 >> Process rank: 0, world size: 8, device: cuda:0, x",
        "Num processes: 8",
        "+ accelerate launch --config_file fsdp.yaml --num_processes 8 sft.py",
    ],
)
def test_number_of_processes(line: str) -> None:
    assert settings_of("hf-trainer", line)["num_gpus"] == "8"


def test_settings_of_a_command_that_fails_early() -> None:
    line = "+ torchrun sft.py --model_max_length 2048 --per_device_train_batch_size 2 --gradient_accumulation_steps=4"
    assert settings_of("hf-trainer", line) == {"seq_len": "2048", "mbs": "2", "gas": "4"}
    assert settings_of("hf-trainer", "usage: sft.py [--per_device_train_batch_size PER_DEVICE_BATCH]") == {}


def test_a_switch_does_not_hide_the_model_behind_it() -> None:
    assert settings_of("hf-trainer", "+ torchrun sft.py --bf16 --model_name_or_path Qwen/Qwen2.5-7B") == {
        "arg:bf16": "true",
        "model": "Qwen/Qwen2.5-7B",
    }
    assert settings_of("hf-trainer", "torchrun train.py --model_id mistralai/Mistral-7B-v0.1 --seed 1") == {
        "model": "mistralai/Mistral-7B-v0.1"
    }


@pytest.mark.slow
@pytest.mark.parametrize(
    "banner",
    [
        """\
==((====))==  Unsloth - 2x faster free finetuning | Num GPUs used = 2
   \\\\   /|    Num examples = 1,000 | Num Epochs = 1 | Total steps = 1,060
O^O/ \\_/ \\    Batch size per device = 2 | Gradient accumulation steps = 4
\\        /    Data Parallel GPUs = 2 | Total batch size (2 x 4 x 2) = 16
 "-____-"     Trainable parameters = 41,943,040 of 8,000,000,000 (0.52% trained)
""",
        """\
==((====))==  Unsloth - 2x faster free finetuning | Num GPUs = 2
   \\\\   /|    Num examples = 1,000 | Num Epochs = 1
O^O/ \\_/ \\    Batch size per device = 2 | Gradient Accumulation steps = 4
\\        /    Total batch size = 16 | Total steps = 1,060
 "-____-"     Number of trainable parameters = 41,943,040
""",
    ],
)
def test_banner_of_unsloth(banner: str) -> None:
    expected = {"num_gpus": "2", "mbs": "2", "gas": "4", "steps_planned": "1060"}
    first = "   \\\\   /|    NVIDIA A100-SXM4-80GB. Num GPUs = 4. Max memory: 79.325 GB. Platform: Linux.\n"
    assert settings_of("hf-trainer", first + banner).items() >= expected.items()


def test_parameters_of_unsloths_first_banner_with_them() -> None:
    line = ' "-____-"     Trainable parameters = 57,016,320/6,852,203,520 (0.83% trained)'
    assert settings_of("hf-trainer", line) == {"params": "6852203520"}


def test_the_whole_batch_of_unsloths_banner(tmp_path: Path) -> None:
    lines = (
        "==((====))==  Unsloth - 2x faster free finetuning | Num GPUs = 8\n"
        "O^O/ \\_/ \\    Batch size per device = 4 | Gradient Accumulation steps = 2\n"
        "\\        /    Total batch size = 64 | Total steps = 99,486\n"
    )
    assert run_of(tmp_path, lines)["gbs"] == 64


LONG = {
    "loss": 2.5,
    "grad_norm": 1.4375,
    "learning_rate": 1.95e-05,
    "memory/max_allocated (GiB)": 1.5,
    "epoch": 0.125,
}
FINAL = {"train_runtime": 9.5, "train_samples_per_second": 1.5, "train_steps_per_second": 0.5, "train_loss": 2.5}


def hard(width: int) -> Callable[[str], str]:
    """As a terminal breaks a line."""
    return lambda line: "\n".join(line[at : at + width] for at in range(0, len(line), width))


def by_words(line: str) -> str:
    return textwrap.fill(line, 50)


def by_rich(line: str) -> str:
    first, *more = textwrap.wrap(line, 48)
    head = f"[05/01/24 12:00:00] INFO     {first:50} trainer.py:2341"
    return "\n".join([head, *(" " * 29 + part for part in more)])


def printed_pretty(line: str) -> str:
    return pprint.pformat(ast.literal_eval(line), width=40)


WRAPS = [*(hard(width) for width in (31, 40, 57, 80, 81, 82, 100, 120)), by_words, by_rich, printed_pretty]


@pytest.mark.parametrize("wrap", WRAPS)
def test_a_dict_that_was_wrapped_over_several_lines(tmp_path: Path, wrap: Callable[[str], str]) -> None:
    text = BEGIN.format(9) + bar(0, 9)
    for n in (3, 6, 9):
        text += wrap(str({**LONG, "loss": n / 8})) + "\n" + bar(n, 9)
    tables = tables_of(
        tmp_path, text + wrap(str(FINAL)) + "\nTraceback (most recent call last):\nValueError: too late\n"
    )
    names = ("step", "loss", "grad_norm", "learning_rate", "mem_allocated_bytes")
    same = (1.4375, 1.95e-05, 3 * 2**29)
    assert tables["steps"].select(names).rows() == [(3, 0.375, *same), (6, 0.75, *same), (9, 1.125, *same)]
    assert tables["rejects"].is_empty()
    assert tables["runs"]["status"].to_list() == ["completed"]


def test_the_final_dict_ends_a_run_however_it_was_wrapped(tmp_path: Path) -> None:
    runs = runs_of(tmp_path, [BEGIN.format(9) + dict_of(3.0) + bar(1, 9) + wrap(str(FINAL)) + "\n" for wrap in WRAPS])
    assert [run["status"] for run in runs] == ["completed"] * len(WRAPS)


def test_a_wrapped_dict_without_its_end_is_a_reject(tmp_path: Path) -> None:
    head = "{'loss': 2.5, 'grad_norm': 1.5,"
    for behind in (
        "",
        " 'learning_rate': 1e-05,",
        " 'learning_rate': 1e-05,\nother\n 'epoch': 0.1}",
        bar(1, 9) + " 'epoch': 0.1}",
    ):
        tables = tables_of(tmp_path, BEGIN.format(9) + f"{head}\n{behind}")
        assert tables["steps"]["loss"].null_count() == tables["steps"].height
        assert tables["rejects"]["raw"].to_list() == [head]


def test_other_dicts_are_neither_steps_nor_rejects(tmp_path: Path) -> None:
    other = "config = {'a': 1,\n 'b': {'c': 2},\n 'd': 3}\n}\n{'eval_loss': 2.5,\n 'epoch': 0.1}\n"
    tables = tables_of(tmp_path, BEGIN.format(9) + other + dict_of(3.0) + bar(3, 9) + other)
    assert tables["steps"].select("step", "loss").rows() == [(3, 3.0)]
    assert tables["rejects"].is_empty()


@pytest.mark.slow
def test_it_does_not_matter_where_a_wrapped_dict_is_cut() -> None:
    text = BEGIN.format(9) + "".join(bar(n, 9) + hard(31)(str(LONG)) + "\n" + bar(n, 9) for n in (3, 6, 9))
    rows = text.splitlines(keepends=True)
    whole = extract.extract(lines.split(0, text.encode()), DIALECTS).facts.steps
    assert whole["step"].to_list() == [3, 6, 9]
    for cut in range(1, len(rows)):
        parts = [("".join(rows[:cut]), 1), ("".join(rows[cut:]), cut + 1)]
        blocks = [lines.split(0, part.encode(), first) for part, first in parts]
        merged = extract.merge([extract.extract(block, DIALECTS, partial=[0]) for block in blocks], DIALECTS)
        assert merged.facts.steps.equals(whole)


def drawn(done: int, total: int, seconds: int) -> str:
    hours, minutes = divmod(seconds // 60, 60)
    clock = f"{hours}:{minutes:02d}:{seconds % 60:02d}" if hours else f"{minutes:02d}:{seconds % 60:02d}"
    return f"\r{100 * done // total:3d}%|##        | {done}/{total} [{clock}<32:20,  9.99s/it]"


class TestOnlyBars:
    def test_steps_and_their_time(self, tmp_path: Path) -> None:
        bars = [drawn(0, 2000, 0), *(drawn(n, 2000, 40 + 2 * n) for n in range(1, 1001))]
        tables = tables_of(tmp_path, BEGIN.format(2000) + "".join(bars) + "\n")
        steps = tables["steps"]
        assert steps["step"].to_list() == [*range(1, 1000, 15), 1000]
        assert set(steps["step_time_s"].to_list()) == {None, 2.0}
        assert steps["loss"].null_count() == steps.height
        run = tables["runs"].row(0, named=True)
        assert (run["status"], run["last_step"], run["steps_planned"], run["step_time_s"]) == (
            "truncated",
            1000,
            2000,
            2.0,
        )

    def test_the_last_redraw_completes_a_run(self, tmp_path: Path) -> None:
        run = run_of(tmp_path, BEGIN.format(3) + "".join(drawn(n, 3, n) for n in (0, 1, 2, 3)) + "\n")
        assert (run["status"], run["last_step"], run.get("step_time_s")) == ("completed", 3, None)

    def test_a_failure_behind_the_last_redraw(self, tmp_path: Path) -> None:
        oom = "\ntorch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB.\n"
        run = run_of(tmp_path, BEGIN.format(9) + drawn(0, 9, 0) + drawn(1, 9, 30) + drawn(2, 9, 90) + oom)
        assert (run["status"], run["last_step"], run["steps_logged"]) == ("oom", 2, 2)

    def test_a_resumed_bar_jumps_and_that_takes_no_time(self, tmp_path: Path) -> None:
        bars = [drawn(0, 2000, 0), *(drawn(500 + n, 2000, 40 + 40 * n) for n in range(1, 9))]
        steps = tables_of(tmp_path, BEGIN.format(2000) + "".join(bars) + "\n")["steps"]
        assert steps.select("step", "step_time_s").rows() == [(501, None), *((500 + n, 40.0) for n in range(2, 9))]

    def test_days_and_hours(self, tmp_path: Path) -> None:
        bars = drawn(1, 9, 3500) + drawn(2, 9, 3700) + drawn(3, 9, 100_000)
        steps = tables_of(tmp_path, BEGIN.format(9) + bars + "\n")["steps"]
        assert steps["step_time_s"].to_list() == [None, 200.0, 96_300.0]

    def test_bars_of_other_lengths_and_names_are_others(self, tmp_path: Path) -> None:
        others = "Map:  50%|#####     | 45/90 [01:00<01:00,  1.33s/it]\n" + drawn(9, 9, 90) + "\n"
        steps = tables_of(tmp_path, others + BEGIN.format(90) + drawn(1, 90, 60) + "\n" + others)["steps"]
        assert steps["step"].to_list() == [1]

    def test_without_its_total_no_bar_is_known_to_be_the_trainings(self, tmp_path: Path) -> None:
        text = "  Instantaneous batch size per device = 2\n" + drawn(1, 90, 60) + drawn(2, 90, 120) + "\n"
        assert tables_of(tmp_path, text)["steps"].is_empty()

    def test_dicts_are_worth_more(self, tmp_path: Path) -> None:
        text = BEGIN.format(90) + drawn(10, 90, 60) + "\n" + dict_of(3.0) + drawn(20, 90, 120) + "\n"
        assert steps_of(tmp_path, text) == [(20, 3.0)]

    @pytest.mark.parametrize("is_mixed", [False, True])
    def test_the_bars_of_several_nodes_are_one_run(self, tmp_path: Path, is_mixed: bool) -> None:
        shown = [(node, n) for n in range(10) for node in range(3)]
        shown = shown if is_mixed else sorted(shown)
        text = BEGIN.format(9) * 3 + "".join(drawn(n, 9, 60 * n) + "\n" * is_mixed for _, n in shown) + "\n"
        tables = tables_of(tmp_path, text)
        assert tables["steps"].select("step", "step_time_s").rows() == [(1, None), *((n, 60.0) for n in range(2, 10))]
        assert tables["runs"]["status"].to_list() == ["completed"]

    def test_each_training_of_a_file_for_itself(self, tmp_path: Path) -> None:
        one = BEGIN.format(9) + drawn(1, 9, 60) + drawn(2, 9, 120) + "\n"
        steps = tables_of(tmp_path, one + one)["steps"]
        assert steps.select("step", "step_time_s").rows() == [(1, None), (2, 60.0)] * 2
        assert steps["run_id"].n_unique() == 2


def test_axolotls_configuration_names_its_processes_and_its_stage() -> None:
    text = """\
        [2025-03-01 10:00:00,100] [INFO] [axolotl.cli.config.load_cfg:227] [PID:1] [RANK:0] config:
        {
          "base_model": "NousResearch/Meta-Llama-3-8B",
          "deepspeed": "deepspeed_configs/zero3_bf16.json",
          "micro_batch_size": 2,
          "world_size": 8
        }
    """
    settings = dict(facts_of("axolotl", text).settings.select("name", "value").iter_rows())
    assert (settings["num_gpus"], settings["zero_stage"], settings["mbs"]) == ("8", "3", "2")


def test_processes_that_accelerate_sets_by_itself() -> None:
    text = """\
        The following values were not passed to `accelerate launch` and had defaults used instead:
        \t`--num_processes` was set to a value of `8`
        \t\tIf this was unintended please pass in `--num_processes=1`.
        \t`--num_machines` was set to a value of `1`
        [2024-01-02 03:04:05,678] [INFO] [axolotl.train.train:128] [PID:1] [RANK:0] Starting trainer...
        {'loss': 1.25, 'learning_rate': 1e-05, 'epoch': 0.5}
    """
    assert settings_of("axolotl", text)["num_gpus"] == "8"
    # Where accelerate finds no accelerator, as on a CPU: a count that is not known, rather than one to reject.
    assert "num_gpus" not in settings_of("axolotl", text.replace("`8`", "`0`"))


SETTINGS = [
    ("Mixed precision type: bf16", "precision", "bf16"),
    ("accelerate launch --mixed_precision fp16 train.py", "precision", "fp16"),
    ("[INFO|parser.py:1] >> Process rank: 0, world size: 8, compute dtype: torch.bfloat16", "precision", "bf16"),
    ("torchrun train.py --bf16 True --tf32 True", "precision", "bf16"),
    ("torchrun train.py --fp16", "precision", "fp16"),
    ("bf16: true", "precision", "bf16"),
    ("deepspeed train.py --deepspeed configs/ds_zero2.json", "zero_stage", 2),
    ("deepspeed=examples/ds_z3_config.json,", "zero_stage", 3),
    ("deepspeed: deepspeed_configs/zero1_torch_compile.json", "zero_stage", 1),
    ("accelerate launch --config_file recipes/zero3.yaml train.py", "zero_stage", 3),
    ("accelerate launch --config_file configs/deepspeed/stage2.yaml train.py", "zero_stage", 2),
    ("accelerate launch --config_file=ds_z1.yaml train.py", "zero_stage", 1),
    ('torchrun train.py --fsdp "full_shard auto_wrap"', "zero_stage", 3),
    ("fsdp=[<FSDPOption.SHARD_GRAD_OP: 'shard_grad_op'>],", "zero_stage", 2),
    ("gradient_checkpointing=True,", "recompute", "full"),
    ("torchrun train.py --bf16 True --gradient_checkpointing True", "recompute", "full"),
    ("torchrun train.py --gradient_checkpointing --bf16", "precision", "bf16"),
    ("torchrun train.py --gradient_checkpointing False --bf16", "recompute", "none"),
    ("max_length=2048,", "seq_len", 2048),
    ("cutoff_len: 4096", "seq_len", 4096),
    ("accelerate launch --num_machines 2 --num_processes 16 train.py", "num_nodes", 2),
]


def test_settings_of_scripts_and_launchers(tmp_path: Path) -> None:
    trained = BEGIN.format(3) + dict_of(2.5) + bar(1, 3)
    runs = runs_of(tmp_path, [f"{line}\n{trained}" for line, _, _ in SETTINGS])
    assert [(line, name, run.get(name)) for (line, name, _), run in zip(SETTINGS, runs, strict=True)] == SETTINGS


def test_what_tells_nothing(tmp_path: Path) -> None:
    silent = [
        "python train.py --bf16 False",
        "Mixed precision type: no",
        "deepspeed train.py --deepspeed ds_config.json --zero_init 3",
        "accelerate launch --config_file configs/stage2_dpo.yaml train.py",
        '  "max_length": 20,',
        "fsdp=[],",
    ]
    runs = runs_of(tmp_path, [f"{line}\n" + BEGIN.format(3) + dict_of(2.5) + bar(1, 3) for line in silent])
    known = {line: {"precision", "zero_stage", "seq_len"} & run.keys() for line, run in zip(silent, runs, strict=True)}
    assert known == {line: set() for line in silent}


def test_logging_steps_of_the_command_number_the_dicts(tmp_path: Path) -> None:
    text = "accelerate launch train.py \\\n    --logging_steps 10 \\\n" + dict_of(3.0) + dict_of(2.0)
    assert steps_of(tmp_path, text) == [(10, 3.0), (20, 2.0)]


def test_reinforcement_learning_tells_its_steps_time_and_tokens(tmp_path: Path) -> None:
    text = BEGIN.format(2) + "".join(
        dict_of(loss, f", 'num_tokens': {tokens}.0, 'step_time': {seconds}") + bar(n, 2)
        for n, (loss, tokens, seconds) in enumerate([(0.0, 400, 12.5), (-0.01, 800, 11.5)], 1)
    )
    steps = tables_of(tmp_path, text)["steps"].sort("step")
    assert list(steps.select("step", "loss", "step_time_s", "consumed_tokens").iter_rows()) == [
        (1, 0.0, 12.5, 400),
        (2, -0.01, 11.5, 800),
    ]


def test_policy_loss_of_ppo(tmp_path: Path) -> None:
    line = (
        "{{'eps': 1, 'objective/kl': 10.5, 'loss/policy_avg': {}, 'loss/value_avg': 0.1, 'lr': 2e-06, 'epoch': 0.9}}\n"
    )
    assert steps_of(tmp_path, "".join(line.format(loss) + bar(n, 9) for n, loss in ((1, 0.5), (2, -0.25)))) == [
        (1, 0.5),
        (2, -0.25),
    ]


AXOLOTL = "[2024-01-19 08:21:59,664] [INFO] [axolotl.load_model:625] [PID:65] [RANK:{}] GPU memory usage: 1.0GB\n"


@pytest.mark.parametrize(("ranks", "gpus"), [((1, 0, 2, 3, 1), 4), ((0, 0), None), ((0, 3), None)])
def test_ranks_that_axolotl_names(tmp_path: Path, ranks: tuple[int, ...], gpus: int | None) -> None:
    run = run_of(tmp_path, "".join(AXOLOTL.format(rank) for rank in ranks) + dict_of(1.0))
    assert run.get("num_gpus") == gpus


def test_axolotls_configuration_as_json(tmp_path: Path) -> None:
    text = """\
        [2025-11-03 10:11:12,100] [INFO] [axolotl.cli.config.load_cfg:256] [PID:991] config:
          "bf16": true,
          "context_parallel_size": 2,
          "fsdp_sharding_strategy": "SHARD_GRAD_OP",
          "gradient_checkpointing": "offload",
          "tensor_parallel_size": 4,
    """
    run = run_of(tmp_path, textwrap.dedent(text) + dict_of(1.0))
    assert [run[name] for name in ("tp", "cp", "zero_stage", "precision", "recompute")] == [4, 2, 2, "bf16", "full"]


@pytest.mark.parametrize(
    ("file", "stage"), [("recipes/zero3.yaml", "3"), ("deepspeed_zero2.yaml", "2"), ("fsdp.yaml", None)]
)
def test_accelerates_configuration_is_known_by_its_name(file: str, stage: str | None) -> None:
    said = settings_of("hf-trainer", f"+ accelerate launch --config_file {file} trl/scripts/grpo.py")
    assert said.get("zero_stage") == stage


@pytest.mark.parametrize(("more", "gpus"), [("", 16), ("Num processes: 32\n", 32)])
def test_devices_that_share_the_batch_of_the_banner(tmp_path: Path, more: str, gpus: int) -> None:
    banner = (
        "***** Running training *****\n  Instantaneous batch size per device = 4\n"
        "  Total train batch size (w. parallel, distributed & accumulation) = 128\n"
        "  Gradient Accumulation steps = 2\n  Total optimization steps = 5\n"
    )
    assert run_of(tmp_path, more + banner + dict_of(2.5))["num_gpus"] == gpus


def test_ranks_of_one_sequence_share_a_batch_in_ms_swift(tmp_path: Path) -> None:
    text = """[INFO:swift] rank: 0, local_rank: 0, world_size: 8, local_world_size: 8
gradient_accumulation_steps=4,
model=/models/google/gemma-4-26B-A4B-it,
per_device_train_batch_size=1,
sequence_parallel_size=2,
[INFO:swift] model_parameter_info: GemmaModel: 25805.9339M Params (25233.1418M Trainable [97.7804%]), 0.0031M Buffers.
***** Running training *****
  Instantaneous batch size per device = 1
  Total train batch size (w. parallel, distributed & accumulation) = 32
  Gradient Accumulation steps = 4
{'loss': '2.1', 'learning_rate': '1e-05', 'global_step/max_steps': '1/2', 'tokens_per_gpu_per_sec': '211.5'}
{'loss': '1.9', 'learning_rate': '1e-05', 'global_step/max_steps': '2/2', 'tokens_per_gpu_per_sec': '212.5'}
"""
    run = run_of(tmp_path, text)
    layout = {"num_gpus": 8, "dp": 4, "cp": 2, "mbs": 1, "gas": 4, "gbs": 16}
    assert {name: run[name] for name in layout} == layout
    assert (run["model"], run["params"]) == ("gemma-4-26B-A4B-it", 25_805_933_900)
    assert run["tokens_per_s_per_gpu"] in (211.5, 212.0, 212.5)
