"""Trainings of transformers' Trainer that were launched into the same file one after the other."""

from __future__ import annotations

from pathlib import Path

from tests.pipeline.logs.logs import tables_of


def dicts(count: int, per_epoch: int, *, first: int = 1, begin: float = 3.0, copies: bool = False) -> str:
    """Log dicts of a training, as they are printed and, with `copies`, once more with the epoch rounded."""
    lines = []
    for number in range(first, first + count):
        epoch = number / per_epoch
        for text in (repr(epoch), repr(round(epoch, 2))) if copies else (repr(epoch),):
            values = f"'loss': {begin - number / 100:.4f}, 'grad_norm': {1 + number / 64}, 'learning_rate': 0.0001"
            lines.append(f"{{{values}, 'epoch': {text}}}\n")
    return "".join(lines)


def test_an_epoch_that_begins_anew_is_another_launch(tmp_path: Path) -> None:
    text = dicts(7, 31) + dicts(5, 31, begin=3.1) + dicts(29, 31, begin=3.2)
    runs = tables_of(tmp_path, text)["runs"].sort("attempt")
    assert runs["steps_logged"].to_list() == [7, 5, 29]


def test_a_training_that_goes_on_from_a_checkpoint_stays_one(tmp_path: Path) -> None:
    runs = tables_of(tmp_path, dicts(20, 31) + dicts(15, 31, first=17, begin=3.1))["runs"]
    assert runs.height == 1


def test_a_dict_that_is_printed_once_more_with_a_rounded_epoch_is_one_step(tmp_path: Path) -> None:
    text = dicts(25, 31, copies=True) + dicts(29, 31, begin=3.1, copies=True)
    runs = tables_of(tmp_path, text)["runs"].sort("attempt")
    assert runs["steps_logged"].to_list() == [25, 29]


def test_a_training_behind_the_final_dict_of_another_one_is_a_run(tmp_path: Path) -> None:
    end = (
        "{{'train_runtime': {0}, 'train_samples_per_second': 8.0, 'train_steps_per_second': 1.0, 'train_loss': 2.5, "
        "'epoch': {1}}}\n"
    )
    lines = dicts(13, 13.9).splitlines(keepends=True)
    behind = dicts(4, 14.5, begin=2.0).splitlines(keepends=True)
    text = "".join([*lines, end.format(6950.2, 1.0), *behind, end.format(2260.1, 0.31)])
    runs = tables_of(tmp_path, text)["runs"].sort("attempt")
    assert runs["steps_logged"].to_list() == [13, 4]
    assert runs["last_step"].to_list()[0] == 6500


def test_a_banner_begins_a_training_whose_bar_comes_before_its_first_dict(tmp_path: Path) -> None:
    banner = "***** Running training *****\n  Num examples = 3,100\n  Total optimization steps = 310\n"
    bars = [f"\r  1%|▏         | {step}/310 [00:{step:02d}<05:00,  1.00s/it]" for step in range(1, 11)]
    behind = dicts(9, 10, begin=3.1).splitlines(keepends=True)
    text = banner + dicts(25, 10) + banner + "".join(bars) + "\n" + "".join(behind)
    runs = tables_of(tmp_path, text)["runs"].sort("attempt")
    assert runs["steps_logged"].to_list() == [25, 9]


def swift(step: int, total: int, loss: float) -> str:
    return (
        f"{{'loss': {loss}, 'grad_norm': 0.06, 'learning_rate': 9.99e-06, 'epoch': 0.12, "
        f"'global_step/max_steps': '{step}/{total}', 'elapsed_time': '1h 41m 55s'}}\n"
    )


def test_a_bar_of_something_else_is_not_that_of_a_training_whose_dicts_state_their_total(tmp_path: Path) -> None:
    bars = "".join(f"100%|█████| 32/32 [00:0{second}<00:00, 52.74it/s]\n" for second in range(3))
    (run,) = tables_of(tmp_path, swift(56, 2290, 0.04) + bars + "  0%|")["runs"].to_dicts()
    assert (run["steps_planned"], run["last_step"]) == (2290, 56)
    assert run["status"] != "completed"


def test_a_bar_that_ends_before_the_step_of_a_dict_is_of_something_else(tmp_path: Path) -> None:
    bars = "".join(f"\r 50%|████  | 16/32 [00:0{second}<00:00,  2.00it/s]" for second in range(1, 4)) + "\n"
    step = "{'loss': 1.5, 'learning_rate': 1e-05, 'epoch': 0.5, 'step': 56}\n"
    (run,) = tables_of(tmp_path, step + bars + step.replace("56", "57"))["runs"].to_dicts()
    assert (run["steps_planned"], run["last_step"]) == (None, 57)


def test_steps_of_dicts_that_a_logger_printed_behind_their_bar(tmp_path: Path) -> None:
    def logged(step: int, loss: float, *, is_cut: bool = False) -> str:
        clock = f"{step * 16 // 3600}:{step * 16 // 60 % 60:02d}:{step * 16 % 60:02d}"
        bar = f"\n  6%|█████▉    | {step}/625 [{clock}<2:41:36, 16.00s/it]"
        rounded = f"{{'loss': {loss:.4f}, 'learning_rate': 1.9999e-05, 'epoch': {step / 625:.2f}}}"
        values = f"{{'loss': {loss:.4f}, 'grad_norm': 1.25, 'learning_rate': 1.99987e-05, 'epoch': {step / 625:.2f}}}"
        echo = f"[INFO|2025-02-09 07:05:39] llamafactory.train.callbacks:157 >> {rounded}\n"
        return bar + echo + (values[:-1] if is_cut else f"{values}\n")

    begin = logged(30, 1.1268).rpartition("\n{")[2]  # the log was cut above its first dict
    text = "{" + begin + logged(35, 1.0802) + logged(40, 1.0274) + logged(45, 1.0011, is_cut=True)
    steps = tables_of(tmp_path, text)["steps"].sort("step")
    assert steps.select("step", "loss").rows() == [(30, 1.1268), (35, 1.0802), (40, 1.0274), (45, 1.0011)]
    assert steps["step_time_s"].to_list()[2:] == [16.0, 16.0]


def test_dicts_behind_the_full_bar_of_an_evaluation_are_of_the_training(tmp_path: Path) -> None:
    """Of the training's bar, a saved terminal keeps the redraws at the ends of epochs: those of an evaluation lie nearer."""
    lines = dicts(30, 10).splitlines(keepends=True)
    text = ""
    for epoch in (1, 2, 3):
        text += "".join(lines[10 * epoch - 10 : 10 * epoch])
        bar = f" {33 * epoch}% {100 * epoch}/300 [0{epoch}:00<00:50,  1.66it/s]\n"
        evaluation = [f" {33 * step}% {step}/3 [00:0{step}<00:00,  3.50it/s]\n" for step in (1, 2, 3)]
        text += bar + "".join(evaluation)
        text += f"{{'eval_loss': 0.7, 'eval_runtime': 3.0, 'epoch': {epoch}.0}}\n{bar}{evaluation[-1]}"
    text += "{'train_runtime': 240.0, 'train_samples_per_second': 20.0, 'train_steps_per_second': 1.25, 'epoch': 3.0}\n"
    (run,) = tables_of(tmp_path, text)["runs"].to_dicts()
    assert (run["steps_planned"], run["steps_logged"], run["last_step"]) == (300, 30, 300)


BANNER = "***** Running training *****\n  Num examples = 400\n  Total optimization steps = 40\n"
FINAL = (
    "{'train_runtime': 160.0, 'train_samples_per_second': 10.0, 'train_steps_per_second': 0.25, 'train_loss': 2.5, "
    "'epoch': 1.0}\n"
)
SAID_END = "Training completed. Do not forget to share your model on huggingface.co/models =)\n"


def bar(first: int, last: int, *, total: int = 40) -> str:
    return "".join(
        f"\r {100 * step // total}%|█| {step}/{total} [{step // 15:02d}:{4 * step % 60:02d}<01:00,  4.00s/it]"
        for step in range(first, last + 1)
    )


def test_dicts_that_came_behind_the_end_of_their_training_are_of_it(tmp_path: Path) -> None:
    """Of two streams in one file, that of the dicts is written when its buffer is full, and at the end."""
    lines = [line.replace("0.0001", f"{1e-4 * (1 - n / 8):.3e}") for n, line in enumerate(dicts(8, 8).splitlines(True))]
    text = BANNER + bar(1, 26) + "\n" + "".join(lines[:3]) + bar(27, 40) + "\n" + SAID_END + "".join(lines[3:]) + FINAL
    (run,) = tables_of(tmp_path, text)["runs"].to_dicts()
    assert (run["steps_logged"], run["first_step"], run["last_step"], run["step_basis"]) == (8, 5, 40, "step")
    assert run["status"] == "completed"


def test_all_dicts_may_come_behind_the_end(tmp_path: Path) -> None:
    text = BANNER + bar(1, 40) + "\n" + SAID_END + dicts(40, 40) + FINAL
    (run,) = tables_of(tmp_path, text)["runs"].to_dicts()
    assert (run["steps_logged"], run["first_step"], run["last_step"]) == (40, 1, 40)


def test_dicts_behind_an_end_whose_epochs_begin_anew_are_of_another_training(tmp_path: Path) -> None:
    text = BANNER + bar(1, 40) + "\n" + dicts(40, 40) + FINAL + dicts(20, 40, begin=2.0)
    assert tables_of(tmp_path, text)["runs"].sort("attempt")["steps_logged"].to_list() == [40, 20]


MODEL = """\
Model config Qwen2Config {
  "hidden_size": 3584,
  "intermediate_size": 18944,
  "num_attention_heads": 28,
  "num_hidden_layers": 28,
  "num_key_value_heads": 4,
  "vocab_size": 152064
}
"""


def test_the_configuration_of_a_model_once_more_begins_no_training(tmp_path: Path) -> None:
    """It is read, and printed, with each checkpoint that is saved."""
    text = MODEL + BANNER + bar(1, 20) + "\n" + dicts(4, 8) + MODEL + bar(21, 40) + "\n" + dicts(4, 8, first=5) + FINAL
    (run,) = tables_of(tmp_path, text)["runs"].to_dicts()
    assert (run["steps_logged"], run["last_step"]) == (8, 40)


def test_dicts_far_below_what_deepspeed_prints_of_itself_are_read(tmp_path: Path) -> None:
    """With many processes the first dict stands behind the lines that decide which dialect a log is of."""
    engine = (
        "[2025-12-05 04:53:00,100] [INFO] [config.py:1007:print] DeepSpeedEngine configuration:\n"
        "[2025-12-05 04:53:00,101] [INFO] [logging.py:107:log_dist] [Rank 0] step=0, skipped=0, lr=[1e-05], mom=[(0.9, 0.999)]\n"
    )
    banner = BANNER + "  Instantaneous batch size per device = 2\n  Number of trainable parameters = 20,185,088\n"
    noise = "Setting the pad token to the end of sequence\n" * 2_500
    text = engine + banner + bar(1, 5) + "\n" + noise + dicts(8, 8) + bar(6, 40) + "\n" + FINAL
    (run,) = tables_of(tmp_path, text)["runs"].to_dicts()
    assert (run["framework"], run["steps_logged"]) == ("hf-trainer", 8)
