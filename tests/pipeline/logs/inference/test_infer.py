"""Logs of trainers that nobody has described, through the front door: what is found in them."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Sequence

import polars as pl
import pytest

from sweepscope.pipeline.ingest import log_blocks
from sweepscope.pipeline.ingest.parser_versions import current_versions
from sweepscope.pipeline.logs.declared.document import read_document
from sweepscope.pipeline.logs.declared.explain import explain
from sweepscope.pipeline.logs.engine import cleaning
from sweepscope.pipeline.logs.inference.infer import infer
from sweepscope.pipeline.logs.inference.source_code import without_source_code
from sweepscope.pipeline.logs.inference.stated import stated, without_measures
from sweepscope.pipeline.logs.registry import DIALECTS, IN_CODE
from sweepscope.pipeline.text import lines
from tests.pipeline.ingest_in_memory import tables_of

STEPS = 40


def losses() -> list[float]:
    return [3 + 7 * math.exp(-step / 12) + math.sin(step * step) / 10 for step in range(1, STEPS + 1)]


def log(form: Callable[[int, float], str], *, head: str = "starting the run\n", tail: str = "") -> str:
    return head + "".join(f"{form(step, loss)}\n" for step, loss in enumerate(losses(), 1)) + tail


FORMS: dict[str, Callable[[int, float], str]] = {
    "words": lambda step, loss: f"step {step}/{STEPS} | loss {loss:.4f} | lr 3.0e-04 | 412.5 ms | 13.8K tok/s",
    "pairs": lambda step, loss: f"step={step} train_loss={loss:.4f} lr=0.0003 step_time_ms=412.5",
    "dict": lambda step, loss: f"{{'iter': {step}, 'loss': {loss:.4f}, 'lr': 3e-4, 'step_time': '0.4125s'}}",
    "json": lambda step, loss: f'{{"train": {{"loss": {loss:.4f}}}, "global_step": {step}, "sec/step": 0.4125}}',
    "brackets": lambda step, loss: f"[{step}/{STEPS}] loss: {loss:.4f} (avg {loss + 0.1:.4f}) 0.4125 s/it",
    "counter first": lambda step, loss: f"{step}/{STEPS} [==>...] - ETA: 9s - loss: {loss:.4f} - 412.5ms/step",
    "rows": lambda step, loss: (
        f"{step},{loss:.4f},0.4125" if step > 1 else f"step,loss,step_time_s\n1,{loss:.4f},0.4125"
    ),
    "below": lambda step, loss: f"[step={step}/{STEPS}]:\n    Train loss: {loss:.4f}\n    step_time: 0.4125s",
    "bare": lambda step, loss: f"#{step}: loss {loss:.4f}, took 412.5ms per step",
    "logger": lambda step, loss: (
        f"2026-01-31 12:00:{step:02d},123 - train - INFO - iter {step}: loss={loss:.4f} (0.4125 s/iter)"
    ),
    "columns in a row": lambda step, loss: f"{step} train {loss:.4f} 412.5 ms",
    "meters": lambda step, loss: f"Train: [{step:3d}/{STEPS}]\tLoss {loss:.4f} ({loss + 0.1:.4f})\t412.5 ms/step",
    "current": lambda step, loss: f"Ep 1 | iter {step} | loss train (curr): {loss:.4f} | iter time: 412.50 ms",
    "objective": lambda step, loss: f"step {step}: objective {loss:.4f}, 412.5 ms/step",
    "records": lambda step, loss: (
        f'{{"key": "train_loss", "value": {loss:.4f}, "metadata": {{"step": {step}, "step_time_s": 0.4125}}}}'
    ),
    "behind an evaluation": lambda step, loss: (
        f'{{"train_loss": {loss:.4f}, "test_loss": 1.5, "iteration": {step}, "train_steps_per_second": {1 / 0.4125}}}'
    ),
    "underscores": lambda step, loss: f"loss={loss:.4f} iteration={step} tokens_per_second=28926.5 step_time_ms=412.5",
    "seconds of a step": lambda step, loss: (
        f"[step {step:04d}]  step={step}  loss={loss:.4f}  kl=256.000  step_sec=0.4125"
    ),
    "steps of a second": lambda step, loss: f"step={step} loss={loss:.4f} steps/sec={1 / 0.4125} ",
    "behind": lambda step, loss: f"loss {loss:.4f} at iteration {step} of {STEPS}, 412.5 ms/step, 13,800 tokens/sec",
}


@pytest.mark.parametrize("name", FORMS)
def test_steps_are_found(name: str) -> None:
    tables = tables_of({"train.log": log(FORMS[name])})
    (run,) = tables["runs"].to_dicts()
    assert (run["framework"], run["parser"], run["steps_logged"]) == ("other", "inferred", STEPS)
    steps = tables["steps"].sort("step")
    assert steps["step"].to_list() == list(range(1, STEPS + 1))
    assert steps["loss"].to_list() == [round(loss, 4) for loss in losses()]
    assert steps["step_time_s"].unique().to_list() == [0.4125]


def test_a_quantity_that_only_may_be_the_loss_is_none_unless_it_falls() -> None:
    rising = tables_of({"train.log": log(lambda step, _loss: f"step {step}: train {1 + step / 50:.4f} lr 3e-4")})
    assert rising["steps"]["loss"].null_count() == STEPS


def test_names_in_a_list_are_those_of_the_values_behind_it() -> None:
    tables = tables_of({"train.log": log(lambda step, loss: f"train batch, loss, lr: {step}, {loss:.4f}, 3e-4")})
    steps = tables["steps"].sort("step")
    assert steps["step"].to_list() == list(range(1, STEPS + 1))
    assert steps["loss"].to_list() == [round(loss, 4) for loss in losses()]


def test_a_time_without_a_unit_is_in_seconds_where_its_mean_stands_behind_it() -> None:
    def form(step: int, loss: float, mean: str) -> str:
        return f"step {step} Time 0.4{step % 10}5{mean} Loss {loss:.4f} ({loss + 0.1:.4f})"

    for mean, known in ((" (0.451)", STEPS), ("", 0)):
        steps = tables_of({"train.log": log(lambda step, loss, mean=mean: form(step, loss, mean))})["steps"]
        assert steps["step_time_s"].count() == known


def test_a_time_in_every_fifth_line_is_that_of_five_steps_where_a_summary_states_so() -> None:
    lines = "".join(f"step {5 * step}: loss={9 - step / 50:.4f}, time=0.4{50 + step % 5}s\n" for step in range(STEPS))
    times = tables_of({"train.log": f"{lines}mean time per step: 0.09 s\n"})["steps"]["step_time_s"]
    assert times.count() == STEPS - 1
    assert times.drop_nulls().is_between(0.09, 0.091).all()


@pytest.mark.parametrize(
    ("end", "is_read"),
    [
        ("  Average step time: 0.452s", True),
        ("avg_iteration_time=451.0 ms", True),
        ("Average step time: 0.452", False),  # of what unit?
        ("", False),
    ],
)
def test_a_time_in_every_fifth_line_is_that_of_a_step_where_a_summary_states_it(end: str, is_read: bool) -> None:
    lines = "".join(f"step {5 * step}: loss={9 - step / 50:.4f}, time=0.4{50 + step % 5}s\n" for step in range(STEPS))
    times = tables_of({"train.log": f"{lines}{end}\n"})["steps"]["step_time_s"]
    assert times.count() == (STEPS if is_read else 0)
    assert times.is_between(0.45, 0.455).all()


@pytest.mark.parametrize(
    ("batch", "stated"),
    [
        ("Total batch size: 524288", {"gbs_tokens": "524288"}),
        ("Total batch size: 1024", {}),
        ("Total batch size: 64", {"gbs": "64"}),
        ("| micro batch size B | 8 |\n| total batch size   | 524288 |", {"mbs": "8", "gbs_tokens": "524288"}),
        ("Tokens / micro-batch: 1024", {}),
    ],
)
def test_a_total_of_whole_sequences_is_no_batch_of_samples(batch: str, stated: dict[str, str]) -> None:
    head = f"seq_len: 1024\n{batch}\n"
    tables = tables_of({"train.log": log(lambda step, loss: f"step {step} loss {loss:.4f}", head=head)})
    assert dict(tables["settings"].select("name", "value").iter_rows()) == {"seq_len": "1024", **stated}


@pytest.mark.parametrize(("counter", "planned"), [("Epoch", 90), ("step", None)])
def test_stated_epochs_are_planned_steps_where_epochs_are_counted(counter: str, planned: int | None) -> None:
    text = log(lambda step, loss: f"{counter} {step}: loss {loss:.4f}", head="lr: 0.1\nnum_epochs: 90\n")
    (run,) = tables_of({"train.log": text})["runs"].to_dicts()
    assert run["steps_planned"] == planned


def test_a_counter_without_a_name_is_one_where_a_loss_stands_below_each() -> None:
    def form(step: int, loss: float) -> str:
        return f"pass 1, {step}/{STEPS} {2.5 * step}%, lr: 0.0001\n    recon loss: {loss:.4f}  ppl:9.5\n"

    steps = tables_of({"train.log": log(form)})["steps"].sort("step")
    assert steps["step"].to_list() == list(range(1, STEPS + 1))
    assert steps["loss"].to_list() == [round(loss, 4) for loss in losses()]


def test_a_trainer_that_failed_before_its_first_step_has_not_completed() -> None:
    failed = 'Traceback (most recent call last):\n  File "train.py", line 9, in run\nValueError: no batch\n'
    text = f"Creating the model of the training\n{failed}Stopping the epoch\nTraining time: 0.00 hours\n"
    assert tables_of({"train.log": text})["runs"]["status"].to_list() == ["crash"]


def test_a_row_for_each_epoch_is_its_step() -> None:
    def form(step: int, loss: float) -> str:
        return f"{step}, {loss:.4f}, 1.5" if step > 1 else f"epoch,loss,ppl\n1, {loss:.4f}, 1.5"

    steps = tables_of({"train.log": log(form)})["steps"].sort("step")
    assert steps["step"].to_list() == list(range(1, STEPS + 1))
    assert steps["loss"].to_list() == [round(loss, 4) for loss in losses()]


def test_an_epoch_comes_to_the_mean_that_is_printed_at_its_end_else_to_its_last_batch() -> None:
    def batches(epoch: int, loss: float) -> str:
        return "\n".join(f"Epoch {epoch} - Batch loss: {loss + part / 100:.4f}" for part in (3, 2, 1))

    def both(epoch: int, loss: float) -> str:
        return f"{batches(epoch, loss)}\nEpoch {epoch} - Average Train Loss: {loss:.4f}"

    for form, more in ((batches, 0.01), (both, 0.0)):
        steps = tables_of({"train.log": log(form)})["steps"].sort("step")
        assert steps["loss"].to_list() == pytest.approx([loss + more for loss in losses()], abs=1e-4)


@pytest.mark.parametrize(
    "end",
    [
        "INFO - Training completed in 12.50 seconds",
        "finished 200 steps",
        "[pretrain] early stop after 28 epochs (no improvement for 6)",
        "[rank 0] done",
        "2026-11-05 10:00:00 | INFO | trainer:main:90 - Bye!",
    ],
)
@pytest.mark.parametrize("form", ["energy {:.3f} of batch {}/40", "step {1} loss {0:.4f}"])
def test_a_trainer_that_says_that_it_is_done_has_completed(end: str, form: str) -> None:
    tables = tables_of({"train.log": log(lambda step, loss: form.format(loss, step), head="epoch 1\n", tail=end)})
    (run,) = tables["runs"].to_dicts()
    assert (run["status"], run["status_evidence"]) == ("completed", end)


@pytest.mark.parametrize(("stop", "status"), [(STEPS, "completed"), (STEPS - 1, "truncated")])
def test_a_trainer_that_prints_all_of_its_work_as_done_has_completed(stop: int, status: str) -> None:
    each = enumerate(losses()[:stop], 1)
    text = "".join(f"[{100 * step / STEPS:.2f}%] batch_index={8 * step} loss={loss:.4f}\n" for step, loss in each)
    (run,) = tables_of({"train.log": f"Start training!\n{text}Save the model to out/model.pth\n"})["runs"].to_dicts()
    assert run["status"] == status


@pytest.mark.parametrize("plan", ["", "max_steps = 400\n"])
@pytest.mark.parametrize(
    ("tail", "status"),
    [
        ("test accuracy 0.31 over 1000 samples\nwriting weights to out/final.pt", "completed"),
        ("writing weights to out/final.pt", "truncated"),
        ("saving checkpoint: done", "truncated"),
        ("[main] done\nvalidating on 64 batches", "truncated"),
        ("", "truncated"),
        ("validating on 64 batches\nvalidation loss 3.1", "truncated"),
        ("test accuracy 0.31 over 1000 samples\nwriting weights to out/final.pt\nslurmstepd: signal 9", "truncated"),
        ("[W314 CUDAGuardImpl.h] Warning: CUDA\nwandb: Synced 5 files", "truncated"),
    ],
)
def test_lines_of_new_forms_behind_the_last_step_show_that_a_trainer_is_done(tail: str, status: str, plan: str) -> None:
    def form(step: int, loss: float) -> str:
        between = "\nvalidating on 32 batches\nvalidation loss 4.5" if step == 10 else ""
        return f"step {step} loss {loss:.4f}{between}"

    tables = tables_of({"train.log": log(form, head=plan, tail=tail)})
    (run,) = tables["runs"].to_dicts()
    assert run["status"] == ("truncated" if plan else status)
    assert run["status_confidence"] == "low"
    if run["status"] == "completed":
        assert "test accuracy" in run["status_evidence"]


def test_steps_without_losses_get_them_from_lines_of_the_users_own() -> None:
    def form(step: int, loss: float) -> str:
        ours = f"[2026-01-31 12:00:{step:02d},000] [INFO] [logging.py:96:log_dist] [Rank 0] step={step}, skipped=0, "
        return f"{ours}lr=[3e-05], mom=[[0.9, 0.95]]\n[Step {step}/{STEPS}] Loss: {loss:.4f} | Tokens/s: 13800.5"

    tables = tables_of({"train.log": log(form)})
    (run,) = tables["runs"].to_dicts()
    steps = tables["steps"].sort("step")
    assert (run["framework"], run["steps_planned"]) == ("deepspeed", STEPS)
    assert steps["step"].to_list() == list(range(1, STEPS + 1))
    assert steps["loss"].to_list() == [round(loss, 4) for loss in losses()]
    assert steps["learning_rate"].unique().to_list() == [3e-5]


def test_a_counter_beside_no_loss_of_a_log_with_losses_counts_no_steps() -> None:
    def form(step: int, loss: float) -> str:
        return f"train_loss: {loss:.4f}" + (
            f"\nthroughput: {5e5 + step:.1f} tokens/s, step {step * 512}" * (step % 8 == 0)
        )

    assert tables_of({"train.log": log(form)})["steps"].is_empty()


def test_the_loss_of_an_evaluation_is_none() -> None:
    def form(step: int, loss: float) -> str:
        line = f"step {step}: loss {loss:.3f}"
        return f"{line}\nvalidation step {step}: loss {loss + 1:.3f}" if step % 5 == 0 else line

    steps = tables_of({"train.log": log(form)})["steps"].sort("step")
    assert steps["loss"].to_list() == [round(loss, 3) for loss in losses()]


def test_steps_go_on_over_epochs() -> None:
    def form(step: int, loss: float) -> str:
        epoch, within = divmod(step - 1, 10)
        return f"Epoch [{epoch + 1}/4], Step [{within + 1}/10], Loss: {loss:.4f}"

    tables = tables_of({"train.log": log(form)})
    assert tables["steps"]["step"].sort().to_list() == list(range(1, STEPS + 1))
    assert tables["runs"]["steps_planned"].to_list() == [STEPS]


SOURCE = "\n".join(
    f"""def function_{number}(step: int, loss: float = {number}.5) -> None:
    if step > {number * 100}:
        print(f"step {number} loss {{loss}}")
    for layer in range({number + 2}):
        self.layers.append(Layer(num_layers={number + 7}))
    return loss
"""
    for number in range(60)
)


def test_the_source_code_that_a_script_prints_is_not_read() -> None:
    text = log(FORMS["words"], head=f"{SOURCE}\nnum_layers: 12\n", tail="quantized 48 layers\n")
    tables = tables_of({"train.log": text})
    (run,) = tables["runs"].to_dicts()
    assert (run["steps_logged"], run["num_layers"]) == (STEPS, 12)
    rows = pl.DataFrame({"text": text.splitlines()})
    assert without_source_code(rows)["text"].to_list()[-STEPS - 2 :] == text.splitlines()[-STEPS - 2 :]
    assert without_source_code(rows).height < STEPS + 10


EPOCH_LINES = {
    "keras": (
        "Epoch {epoch}/3",
        "{batch}/{size} [==>...] - ETA: 9s - loss: {loss:.4f}",
        "40/40 [=====] - 5s 142ms/step - loss: 2.5 - val_loss: 2.6",
    ),
    "a word before": (
        "2026-01-31 12:00:00 - INFO - === Starting epoch {epoch} ===",
        "batch {batch}: loss={loss:.4f}",
        "",
    ),
}


@pytest.mark.parametrize("name", EPOCH_LINES)
def test_steps_go_on_below_the_line_of_each_epoch(name: str) -> None:
    above, step, last = EPOCH_LINES[name]
    text = ""
    for epoch in (1, 2, 3):
        rows = [step.format(batch=batch, size=40, loss=9 - epoch % 2 - batch / 90) for batch in (1, 10, 20, 30, 40)]
        text += "\n".join([above.format(epoch=epoch), *rows, last, ""])
    tables = tables_of({"train.log": text})
    assert tables["runs"].height == 1
    assert tables["steps"]["step"].to_list() == [*(1, 10, 20, 30, 40), *(41, 50, 60, 70, 80), *(81, 90, 100, 110, 120)]


def test_a_line_of_an_epoch_leaves_steps_alone_that_go_on_anyway() -> None:
    lines = [f"step {at}: loss {9 - at / 20:.4f}" + f"\nEpoch {at // 10 + 1}" * (at % 10 == 0) for at in range(1, 41)]
    tables = tables_of({"train.log": "\n".join(["Epoch 1", *lines, ""])})
    assert tables["steps"]["step"].to_list() == list(range(1, 41))


def samples_log(epochs: int, batch: int, seen: int, *, of: int, head: str) -> str:
    """The log of PyTorch's examples: samples that a rank has seen of an epoch, `seen` at its end, of all there are."""
    lines = [
        f"Train Epoch: {epoch} [{at}/{of} ({100 * at / seen:.0f}%)]\tLoss: {9 / (epoch + at / seen):.6f}"
        for epoch in range(1, epochs + 1)
        for at in range(0, seen, 10 * batch)
    ]
    return "\n".join([head, *lines, ""])


STATED_BATCH = "Namespace(batch_size=64, epochs=3, lr=1.0)"


@pytest.mark.parametrize(
    ("text", "steps", "basis"),
    [
        (samples_log(3, 64, 64_000, of=64_000, head=STATED_BATCH), [0, 10, 2_990], "step"),
        (samples_log(3, 64, 60_000, of=60_000, head=STATED_BATCH), [0, 10, 2_805], "epoch"),
        (samples_log(3, 64, 32_000, of=64_000, head=STATED_BATCH), [0, 10, 1_470], "epoch"),
        (samples_log(1, 64, 64_000, of=64_000, head=STATED_BATCH.replace("64", "24")), [0, 640, 63_360], "step"),
    ],
    ids=["whole batches", "a part of a batch at the end", "of two ranks, each half", "no whole batches: steps"],
)
def test_a_counter_of_samples_is_one_of_steps(text: str, steps: list[int], basis: str) -> None:
    tables = tables_of({"train.log": text})
    (run,) = tables["runs"].to_dicts()
    found = tables["steps"]["step"].to_list()
    assert [*found[:2], found[-1]] == steps
    assert run["step_basis"] == basis


@pytest.mark.parametrize(
    "text",
    [
        "",
        "Collecting torch==2.3.0\n  Downloading torch-2.3.0.whl (779.1 MB)\n" * 20,
        "".join(f"Downloading shard {n}/40, {n}.5 MB/s\n" for n in range(40)),
        "".join(f"127.0.0.1 - - [31/Jan/2026 12:00:{n:02d}] GET /step/{n} HTTP/1.1 200\n" for n in range(40)),
        "".join(f"processed {n} of 40 documents in {n}.2 s\n" for n in range(40)),
    ],
)
def test_what_is_no_training_gives_no_run(text: str) -> None:
    tables = tables_of({"some.log": text})
    assert tables["steps"].is_empty()
    assert tables["runs"].filter(pl.col("parser") == "inferred").is_empty()


@pytest.mark.parametrize("name", FORMS)
def test_the_file_that_is_inferred_reads_its_log(name: str) -> None:
    """As `dialect test` sees it, beside all other dialects: nothing in it is a text that another one also has."""
    text = log(FORMS[name]).encode()
    rows, inference = cleaning.clean(lines.split(0, text)), infer(log_blocks.sample([(text, 1)]))
    document = read_document(inference.toml, "inferred", reserved=current_versions().keys(), others=IN_CODE)
    result = explain(rows, document, DIALECTS)
    assert (result.owner, result.steps, result.rejects) == (document.name, STEPS, 0)


def test_a_speed_in_words_that_another_dialect_also_has_is_no_signature() -> None:
    """' tok/s' was the longest text of such a line, and a signature of a dialect in code."""
    text = log(lambda step, loss: f"it {step} | ce {loss:.4f} | 13.8K tok/s")
    inference = infer(log_blocks.sample([(text.encode(), 1)]))
    assert inference.document is not None
    assert inference.document.signature == ()


def test_two_names_that_agree_overrule_a_vaguer_one() -> None:
    head = "seq_length: 2048\nmax_position_embeddings: 2048\naio: block_size: 1048576\n"
    head += "device_train_microbatch_size: 4\ndevice_train_batch_size: 64\n"
    (run,) = tables_of({"train.log": log(FORMS["words"], head=head)})["runs"].to_dicts()
    assert (run["seq_len"], run["mbs"]) == (2048, 4)


CONFIGURATION = """model config:
{
  "n_ctx": 1024,
  "n_positions": 1024,
  "task_specific_params": {
    "text-generation": {
      "max_length": 50
    }
  },
  "vocab_size": 30000
}
"""


@pytest.mark.parametrize(
    ("head", "stated"),
    [
        (CONFIGURATION + "args:Namespace(max_len=200, batch_size=16)\n", {"seq_len": 200, "mbs": 16}),
        (CONFIGURATION, {"seq_len": 1024}),
        ("eval:\n  batch_size: 64\n  max_length: 512\ntrain:\n  batch_size: 4\n", {"mbs": 4, "seq_len": None}),
    ],
)
def test_a_section_of_something_else_states_nothing_and_a_models_positions_little(
    head: str, stated: dict[str, int | None]
) -> None:
    (run,) = tables_of({"train.log": log(FORMS["pairs"], head=head)})["runs"].to_dicts()
    assert {name: run.get(name) for name in stated} == stated


def test_the_size_of_a_job_counts_more_than_the_cards_that_a_process_sees() -> None:
    head = "model on device_map: None (DeviceRankInfo(world_size=1, rank=0))\nGpuInfo(device_index=0, device_count=4)\n"
    (run,) = tables_of({"train.log": log(FORMS["pairs"], head=head)})["runs"].to_dicts()
    assert run["num_gpus"] == 1


@pytest.mark.parametrize(
    ("line", "seq_len"),
    [
        ("aio_config ........ {'block_size': 1048576, 'queue_depth': 8}", None),
        ("Namespace(lr=0.1, block_size=2048)", 2048),
        ("vision_config={'seq_len': 577}", None),
        ("AcmeConfig(seq_len=4096, dims=(1, 2))", 4096),
    ],
)
def test_a_value_of_something_else_is_no_setting(line: str, seq_len: int | None) -> None:
    (run,) = tables_of({"train.log": log(FORMS["pairs"], head=f"{line}\n")})["runs"].to_dicts()
    assert run.get("seq_len") == seq_len


@pytest.mark.parametrize("number", ["9" * 400, "1e309", "9" * 400 + "M", "nan", "-inf"])
def test_a_number_that_no_column_holds_is_no_setting(number: str) -> None:
    head = f"seq_len: {number}\nNamespace(params={number}, global_batch_size={number})\n"
    (run,) = tables_of({"train.log": log(FORMS["pairs"], head=head)})["runs"].to_dicts()
    assert not {"seq_len", "params", "gbs"} & {name for name, value in run.items() if value is not None}
    assert run["last_step"] == STEPS


def test_epochs_that_stand_for_steps_are_called_epochs() -> None:
    text = log(lambda step, loss: f"2026-01-31 12:00:{step:02d} INFO epoch {step}/{STEPS} loss {loss:.4f}")
    (run,) = tables_of({"train.log": text})["runs"].to_dicts()
    assert (run["last_step"], run["step_basis"], run["status"]) == (STEPS, "whole_epoch", "completed")
    assert run["step_time_s"] is None  # an epoch's is none of a step


@pytest.mark.parametrize("begin", ["Epoch [{}/3] Step [{}/30] Loss: {:.4f}", "[Epoch {}/3][{:4d}:300]  Loss: {:.4f}"])
def test_steps_go_on_over_epochs_of_a_log_that_is_looked_at_in_parts(begin: str) -> None:
    """Between two parts of the sample lie epochs that it leaves out: there the counter need not begin anew."""
    length = 300 if "300" in begin else 30
    rows = [(epoch, at) for epoch in (1, 2, 3) for at in range(length)]
    text = "".join(begin.format(epoch, at, 9 / (epoch + at / length)) + "\n" for epoch, at in rows)
    (run,) = tables_of({"train.log": text})["runs"].to_dicts()
    known = (run["first_step"], run["last_step"], run["steps_logged"], run["steps_planned"], run["status"])
    assert known == (0, 3 * length - 1, 3 * length, 3 * length, "completed")


def table(iteration: int, loss: float) -> str:
    """As RL libraries print their figures: a row for each of them."""
    rows = {
        "time/": "",
        "   fps": 4664,
        "   iterations": iteration,
        "train/": "",
        "   loss": f"{loss:.4f}",
        "   n_updates": 4,
    }
    bar = "-" * 40
    return "\n".join([bar, *(f"| {name:<20} | {value!s:<11} |" for name, value in rows.items()), bar])


@pytest.mark.parametrize("form", [table, lambda step, loss: f"epoch   {step}\n\nloss: {loss:.4f}\n\naccuracy: 12.5%\n"])
def test_the_values_of_a_step_may_stand_in_lines_of_their_own(form: Callable[[int, float], str]) -> None:
    steps = tables_of({"train.log": log(form)})["steps"].sort("step")
    assert steps["step"].to_list() == list(range(1, STEPS + 1))
    assert steps["loss"].to_list() == [round(loss, 4) for loss in losses()]


def record(name: str, value: float, **metadata: float) -> str:
    metadata = {"lineno": 17, **metadata}
    return f':::REC {{"time_ms": 1684435437673, "key": "{name}", "value": {value}, "metadata": {json.dumps(metadata)}}}'


@pytest.mark.parametrize(("each", "name"), [(64, "samples_count"), (64 * 2048, "step")])
def test_a_counter_that_moves_by_whole_batches_of_the_job_is_one_of_steps(each: int, name: str) -> None:
    head = record("global_batch_size", 64) + "\n" + record("max_sequence_length", 2048) + "\n"
    text = log(lambda step, loss: record("train_loss", round(loss, 4), **{name: step * each}), head=head)
    tables = tables_of({"train.log": text})
    assert {("gbs", "64"), ("seq_len", "2048")} <= set(tables["settings"].select("name", "value").iter_rows())
    assert tables["steps"].sort("step")["step"].to_list() == list(range(1, STEPS + 1))
    assert tables["steps"].sort("step")["loss"].to_list() == [round(loss, 4) for loss in losses()]


def test_a_counter_of_samples_of_an_unknown_batch_counts_no_steps() -> None:
    text = log(lambda step, loss: record("train_loss", round(loss, 4), samples_count=step * 64))
    assert tables_of({"train.log": text})["steps"].is_empty()


def test_a_bar_that_names_its_epoch_counts_steps_without_a_loss() -> None:
    def bar(epoch: int, done: int) -> str:
        drawn = "█" * (done * 10 // 20)
        return f"Epoch {epoch}/3: {5 * done:3d}%|{drawn:<10}| {done}/20 [00:{done:02d}<00:20,  1.01s/it]"

    text = "".join(bar(epoch, done) + "\n" for epoch in (1, 2, 3) for done in range(1, 21))
    (run,) = tables_of({"train.log": text})["runs"].to_dicts()
    assert (run["first_step"], run["last_step"], run["steps_planned"], run["status"]) == (1, 60, 60, "completed")
    assert tables_of({"train.log": text.replace("Epoch", "Shard")})["runs"].is_empty()


@pytest.mark.parametrize(("done", "status"), [(3, "completed"), (2, "truncated")])
def test_the_end_of_the_last_epoch_is_that_of_the_training(done: int, status: str) -> None:
    def epoch(number: int) -> str:
        rows = "".join(f"[step {10 * number + at}] loss={9 / (10 * number + at):.4f}\n" for at in range(10))
        return f"=== Epoch {number}/3 ===\n{rows}Saved the weights\n== end of epoch {number} ==\n\n"

    text = "".join(map(epoch, range(1, done + 1))) + ("" if done == 3 else f"=== Epoch {done + 1}/3 ===\n")
    assert tables_of({"train.log": text})["runs"]["status"].to_list() == [status]


def test_steps_that_lines_without_an_epoch_name_do_not_hide_that_they_begin_anew() -> None:
    rows = [
        f"INFO:__main__:Epoch {epoch} | step {at}/20 | loss={9 / (20 * epoch + at + 1):.4f}"
        for epoch in (0, 1, 2)
        for at in range(20)
    ]
    rows[15:15], rows[48:48] = ["Saved checkpoint at step 15"], ["Saved checkpoint at step 7"]
    (run,) = tables_of({"train.log": "\n".join(rows) + "\n"})["runs"].to_dicts()
    assert (run["first_step"], run["last_step"], run["steps_logged"]) == (0, 59, 60)


def test_a_line_of_a_checkpoint_is_no_step() -> None:
    def form(step: int, loss: float) -> str:
        saved = f"Checkpoint saved to best.pt (epoch {step}, loss {loss:.4f})"
        return saved if step % 4 else f"epoch {step} | loss {loss:.4f} | lr 3e-4\n{saved}"

    steps = tables_of({"train.log": log(form)})["steps"].sort("step")
    assert steps["step"].to_list() == list(range(4, STEPS + 1, 4))


def test_of_several_losses_without_a_whole_none_is_the_loss_but_their_sum() -> None:
    def parts(step: int, loss: float) -> str:
        return f"step {step} | cls loss {loss:.4f} | box loss {loss / 2:.4f} | lr 3e-4"

    alone = tables_of({"train.log": log(parts)})["steps"]
    assert (alone.height, alone["loss"].null_count()) == (STEPS, STEPS)
    with_sum = tables_of({"train.log": log(lambda step, loss: f"{parts(step, loss)} | joint loss {1.5 * loss:.4f}")})
    assert with_sum["steps"].sort("step")["loss"].to_list() == [round(1.5 * loss, 4) for loss in losses()]
    whole = tables_of({"train.log": log(lambda step, loss: f"{parts(step, loss)} | all_loss {3 * loss:.4f}")})
    assert whole["steps"].sort("step")["loss"].to_list() == [round(3 * loss, 4) for loss in losses()]


def test_times_of_a_counter_of_tokens_are_compared_with_the_clock_by_steps() -> None:
    head = record("global_batch_size", 64) + "\n" + record("max_sequence_length", 2048) + "\n"

    def form(step: int, _loss: float) -> str:
        ms = 1_700_000_000_000 + step * 12_500
        return (
            f'{{"time_ms": {ms}, "key": "stats", "value": {{"train_step_timing in s": 12.5}}, "step": {step * 131072}}}'
        )

    tail = '{"time_ms": 1700000600000, "key": "stats", "value": {"throughput": 100000.5}, "step": 5242880}\n'
    steps = tables_of({"train.log": log(form, head=head, tail=tail)})["steps"].sort("step")
    assert steps["step"].to_list() == list(range(1, STEPS + 1))
    assert steps["step_time_s"].unique().to_list() == [12.5]


@pytest.mark.parametrize(
    "tail",
    [
        '{"key": "run_stop", "value": null, "metadata": {"samples_count": 2560, "status": "success"}}\n',
        "Saved final model to: runs/first/model.zip\n",
        "🎉 训练完成！\n",
        "Target loss of 0.1 achieved at step 41! Final Loss: 0.0883\n",
        "Обучение завершено\n",
        "Evaluating metrics...\nExiting...\n",
        "Epoch 6: Early stopping.\n",
    ],
)
def test_a_record_of_success_the_final_model_and_words_of_other_languages_end_a_training(tail: str) -> None:
    head = record("global_batch_size", 64) + "\n"
    text = log(lambda step, loss: record("train_loss", round(loss, 4), samples_count=step * 64), head=head, tail=tail)
    assert tables_of({"train.log": text})["runs"]["status"].to_list() == ["completed"]


def test_a_total_that_is_reached_while_more_is_planned_is_that_of_an_epoch() -> None:
    text = log(lambda step, loss: f"Train: [0]  [{step}/{STEPS}]  loss: {loss:.4f}", head="max_iters: 400\n")
    (run,) = tables_of({"train.log": text})["runs"].to_dicts()
    assert (run["last_step"], run["steps_planned"], run["status"]) == (STEPS, 400, "truncated")


def test_losses_below_epochs_are_found_in_a_log_to_which_many_runs_append() -> None:
    def epoch(number: int, loss: float) -> str:
        return f"Epoch {number}/{STEPS}\nTrain loss: {loss:.4f}, acc 11%\nVal loss: {loss + 1:.4f}\nBest saved in 3 s"

    texts = (log(lambda number, loss, nth=nth: epoch(number, loss + nth / 50), head="Start\n") for nth in range(12))
    text = "".join(texts)
    tables = tables_of({"train.log": text})
    assert tables["runs"]["steps_logged"].to_list() == [STEPS] * 12
    assert tables["steps"]["loss"].null_count() == 0


def test_batches_in_brackets_without_a_total_count_within_their_epoch() -> None:
    def epoch(number: int) -> str:
        rows = (f"Epoch: [{number}][{at}]\tLoss {9 / (number + at / 100):.4f}\tLr: 0.1" for at in (0, 50, 100))
        return "\n".join(rows) + f"\nEpoch: [{number}] done\n"

    (run,) = tables_of({"train.log": "".join(epoch(number) for number in range(1, 31))})["runs"].to_dicts()
    assert (run["steps_logged"], run["first_step"], run["last_step"]) == (90, 0, 29 * 101 + 100)


def test_epochs_of_another_launch_may_have_another_length() -> None:
    def launch(length: int) -> str:
        rows = [
            f"epoch {epoch} step {at} loss {9 / (epoch + at + 1):.4f}" for epoch in range(4) for at in range(length)
        ]
        return "\n".join(rows) + "\n"

    runs = tables_of({"train.log": launch(30) + launch(12)})["runs"].sort("attempt")
    assert runs["last_step"].to_list() == [119, 47]


def test_a_full_stop_behind_a_number_of_a_step_is_no_fraction() -> None:
    tail = f"Training complete at step {STEPS}. Best loss: 0.1385\n"
    (run,) = tables_of({"train.log": log(FORMS["pairs"], tail=tail)})["runs"].to_dicts()
    assert (run["steps_logged"], run["status"]) == (STEPS, "completed")


def test_a_table_of_keys_is_a_step_though_an_evaluation_prints_some_again() -> None:
    def table(step: int, loss: float) -> str:
        again = f"| eval/ | |\n|    reward | 3 |\n|    loss | {loss:.4f} |\n" if step % 5 == 0 else ""
        return f"{'-' * 20}\n|    iterations | {step} |\n| train/ | |\n|    loss | {loss:.4f} |\n{'-' * 20}\n{again}"

    steps = tables_of({"train.log": log(table)})["steps"].sort("step")
    assert steps["loss"].to_list() == [round(loss, 4) for loss in losses()]


def test_a_header_with_commas_stands_above_rows_with_tabs_and_padded_cells() -> None:
    def form(step: int, loss: float) -> str:
        return f"   1\t{4 * step:4d}\t{loss:7.4f}"

    steps = tables_of({"train.log": log(form, head="epoch,step,tr_loss\n")})["steps"].sort("step")
    assert steps["step"].to_list() == list(range(4, 4 * STEPS + 1, 4))
    assert steps["loss"].to_list() == [round(loss, 4) for loss in losses()]


def test_a_header_that_stands_where_steps_begin_anew_begins_a_launch() -> None:
    head = "step,loss\n"
    texts = [head + "".join(f"{row},{9 / row + nth / 100}\n" for row in range(1, 6)) for nth in range(4)]
    of_screens = "".join(f"{head}{nth},{9 / nth:.4f}\n{nth + 1},{9 / (nth + 1):.4f}\n" for nth in range(1, 30, 2))
    assert tables_of({"train.log": "".join(texts)})["runs"]["steps_logged"].to_list() == [5, 5, 5, 5]
    assert tables_of({"train.log": of_screens})["runs"]["steps_logged"].to_list() == [30]


@pytest.mark.parametrize("heading", ["Eval begin...", "Epoch end"])
def test_lines_below_the_heading_of_an_evaluation_are_no_steps_though_they_look_the_same(heading: str) -> None:
    def epoch(number: int) -> str:
        rows = [f"step {at}/60 - loss: {9 / (number + at / 60):.4f}" for at in range(10, 61, 10)]
        return "\n".join([f"Epoch {number}/4", *rows, heading, *(f"step {at}/20 - loss: 0.5" for at in (10, 20)), ""])

    runs = tables_of({"train.log": "".join(map(epoch, range(1, 5)))})["runs"]
    found = runs.select("steps_logged", "last_step", "last_loss").rows()
    assert (found == [(24, 240, round(9 / 5, 4))]) is (heading == "Eval begin...")


def test_of_losses_in_lines_of_their_own_that_with_the_plain_name_is_the_loss() -> None:
    def form(step: int, loss: float) -> str:
        begin = f"2026-01-31 12:00:{step:02d},123 INFO     Training average"
        parts = (f"{begin} {part}_loss at step {step}: {loss / 2:.4f}" for part in ("positive", "negative"))
        return "\n".join([*parts, f"{begin} loss at step {step}: {loss:.4f}"])

    steps = tables_of({"train.log": log(form)})["steps"].sort("step")
    assert steps["loss"].to_list() == [round(loss, 4) for loss in losses()]


def test_the_batch_of_a_card_beside_that_of_the_job() -> None:
    (run,) = tables_of({"train.log": log(FORMS["pairs"], head='"batch_size": 16,\n"batch_gpu": 8,\n')})[
        "runs"
    ].to_dicts()
    assert (run["gbs"], run["mbs"]) == (16, 8)


@pytest.mark.parametrize(("batch", "column"), [(64, "gbs"), (4, "mbs"), (24, "mbs")])
def test_the_tokens_of_a_step_tell_whose_batch_it_is(batch: int, column: str) -> None:
    head = f"config: batch_size: {batch}, seq_len: 1024, grad_accum: 2, dp: 8\n"

    def form(step: int, loss: float) -> str:
        return f"step {step} loss {loss:.4f}, steps_per_sec={0.5:.3f}, tokens_per_sec={64 * 1024 * 0.5:.1f}"

    (run,) = tables_of({"train.log": log(form, head=head)})["runs"].to_dicts()
    assert {name: run[name] for name in ("gbs", "mbs") if run.get(name)} == {column: batch}


def test_a_log_that_begins_in_the_middle_of_a_training_tells_its_first_epoch_by_the_last() -> None:
    def begun(first: int, last: int) -> str:
        rows = [(epoch, batch) for epoch in range(first, last + 1) for batch in range(20, 101, 20)]
        return "".join(f"Epoch: {e} | Batch: {b}/100 | loss: {9 - e / 9 - b / 900:.4f}\n" for e, b in rows)

    last = {text: tables_of({"train.log": text})["runs"]["last_step"].item() for text in (begun(16, 30), begun(16, 29))}
    assert list(last.values()) == [30 * 100, 30 * 100]


def test_a_part_of_the_loss_beside_another_measure_is_not_the_loss() -> None:
    text = log(lambda step, loss: f"Epoch {step:02d} | Train MSE: {loss:.4f} | Gate Loss: {0.5 - step / 1000:.4f}")
    assert tables_of({"train.log": text})["runs"]["last_loss"].item() == round(losses()[-1], 4)


def test_one_figure_beyond_the_peak_leaves_the_others() -> None:
    text = log(lambda step, loss: f"step {step} | loss {loss:.4f} | mfu {114.1 if step == 1 else 37.4}%")
    tables = tables_of({"train.log": text})
    assert tables["steps"].sort("step")["mfu_logged"].to_list()[1:] == pytest.approx([0.374] * (STEPS - 1))


def test_a_bar_without_a_total_counts_anything() -> None:
    bar = "".join(f"{number * 3211}it [00:0{number}, 31705.27it/s]\r" for number in range(1, 8))
    assert tables_of({"train.log": f"loading passages of the training\n{bar}\n"})["steps"].is_empty()


def test_tokens_of_a_step_may_stand_behind_a_slash() -> None:
    head = "Tokens / optimizer step : 32,768\nTokens / micro-batch : 4,096\nEffective batch size    : 32\n"
    (run,) = tables_of({"train.log": log(FORMS["words"], head=head)})["runs"].to_dicts()
    assert (run["gbs_tokens"], run["gbs"]) == (32_768, 32)


def test_launches_without_a_step_begin_with_the_same_line() -> None:
    def launch(day: int, process: int) -> str:
        mark = f"[2025-02-{day:02d} 14:21:39,350][acme][rank0][pid:{process}][MainThread][INFO]]"
        return (
            f"{mark}[train.py:158] Resolved 'training.workers=auto' to 'training.workers=2'\n"
            f"{mark}[train.py:188] TrainingConfig:\nTrainingConfig(max_steps=1000,\n"
            "    per_device_train_batch_size=16,\n    gradient_accumulation_steps=1,\n"
            f"    max_seq_length=2048)\n{mark}[models.py:208] Building the model of the training\n"
        )

    runs = tables_of({"train.log": launch(12, 1820258) + launch(13, 529184) + launch(14, 2800716)})["runs"]
    assert runs.height == 3
    assert runs["mbs"].to_list() == [16] * 3


@pytest.mark.parametrize("encoding", ["utf-8", "gb18030"])
def test_a_trainer_that_prints_chinese_is_read(encoding: str) -> None:
    lines = [
        f"当前Batch：{batch}/100 | 当前epoch:{epoch}/5 | 当前损失值：{9 - epoch - batch / 200:.4f} | 当前准确率：61.34%\n"
        for epoch in range(3)
        for batch in range(10, 101, 10)
    ]
    text = "模型训练开始\n" + "".join(lines)
    (run,) = tables_of({"train.log": text.encode(encoding)})["runs"].to_dicts()
    assert (run["steps_logged"], run["last_step"], run["steps_planned"]) == (30, 300, 500)
    assert run["last_loss"] == 6.5


def test_redraws_of_bars_do_not_hide_the_losses_of_epochs() -> None:
    def bar(name: str, total: int) -> str:
        drawn = range(0, total + 1, 3)
        each = (f"{name}: {100 * at // total}%|#  | {at}/{total} [00:{at % 60:02d}<00:21, 16.48it/s]" for at in drawn)
        return "\r".join(each)

    text = "".join(
        f"2025-09-16 12:{epoch:02d}:15,518 - INFO - Epoch {epoch}/50\n\r{bar('Training', 400)}"
        f"2025-09-16 12:{epoch:02d}:36,643 - INFO - Train Loss: {3 / epoch:.4f}, Train Acc: 74.89%\n"
        f"\r{bar('Validation', 80)}2025-09-16 12:{epoch:02d}:40,643 - INFO - Val Loss: 3.5, Val Acc: 74.89%\n"
        for epoch in range(1, 13)
    )
    losses = tables_of({"train.log": f"The trainer begins\n{text}"})["steps"].sort("step")["loss"].drop_nulls()
    assert losses.to_list() == [round(3 / epoch, 4) for epoch in range(1, 13)]


def test_parameters_of_the_whole_model_count_more_than_those_that_are_trained() -> None:
    head = (
        "Total parameters: 473,038,720\nTrainable parameters: 117,641,088\nNumber of GPUs: 4\nTraining for 4000 steps\n"
    )
    text = log(lambda step, loss: f"step {step} | loss {loss:.4f}", head=head)
    (run,) = tables_of({"train.log": text})["runs"].to_dicts()
    assert (run["params"], run["num_gpus"], run["steps_planned"]) == (473_038_720, 4, 4000)


def test_a_number_in_a_sentence_is_read() -> None:
    text = log(FORMS["words"], head="INFO - Model initialized with 123456 parameters\n")
    assert tables_of({"train.log": text})["runs"]["params"].item() == 123_456


def test_a_clause_of_a_heading_states_a_setting() -> None:
    head = "torch 2.11.0, NVIDIA H100 80GB HBM3, world size 16\nrunning (micro batch 4, seq len 2,048), tensor parallel 2\n"
    (run,) = tables_of({"train.log": log(FORMS["words"], head=head)})["runs"].to_dicts()
    assert (run["num_gpus"], run["mbs"], run["seq_len"], run["tp"]) == (16, 4, 2048, 2)
    saved = "saved (global step 300, data parallel rank 0)\n"
    (run,) = tables_of({"train.log": log(FORMS["words"], head=saved)})["runs"].to_dicts()
    assert (run["steps_planned"], run.get("dp")) == (STEPS, None)


@pytest.mark.parametrize(
    ("head", "stated"),
    [
        ("mesh: data=8 tensor=2 pipeline=4", {"dp": 8, "tp": 2, "pp": 4}),
        ("DeviceMesh(data: 4, tensor: 8)", {"dp": 4, "tp": 8}),
        ("world 16 ranks on 2 hosts", {"num_gpus": 16, "num_nodes": 2}),
        ("sweep on 8x A100-SXM4-80GB", {"num_gpus": 8}),
        ("gpus : 32 x MI300X", {"num_gpus": 32}),
        ("rank 0 of 8 is up, local rank 0 of 4", {"num_gpus": 8}),
        ("init rank=0/8 tp=1, local_rank=0/4", {"num_gpus": 8, "tp": 1}),
        ("nodes=2 NVIDIA H100 80GB HBM3 tp=4 dp=4 pp=1", {"num_nodes": 2, "tp": 4, "dp": 4, "pp": 1}),
        ("using A100 tp=2 pp=4, layer 3 heads=12", {"tp": 2, "pp": 4}),
        ("llama-7b tp: 4, ViT-L/14 layers=24", {"tp": 4}),
        ("data=8, shuffle=True", {}),
        ("JAX process: 0 / 2", {"num_nodes": 2}),
        ("trained on 8 nodes of H100-SXM-80GB", {"num_nodes": 8}),
        ("Mesh shape: {'data': 1, 'fsdp': 16, 'tensor': 2}", {"dp": 16, "tp": 2}),
        ("Mesh shape: {'data': 4, 'fsdp': 1, 'tensor': 2}", {"dp": 4, "tp": 2}),
        (
            "JAX devices: 16 (8 local); Mesh shape: {'data': 2, 'fsdp': 4, 'tensor': 2}",
            {"num_gpus": 16, "dp": 8, "tp": 2},
        ),
        (
            "mesh (dp_replicate=2, dp_shard=8, cp=1, tp=4, pp=1) on 64 devices",
            {"dp": 16, "tp": 4, "pp": 1, "num_gpus": 64},
        ),
        ("mesh (dp_replicate=1, dp_shard=8, tp=4) on 32 devices", {"dp": 8, "tp": 4, "num_gpus": 32}),
        ("# pretrain  ranks=8  per_gpu_batch=4  accumulate=2  GPU=H100", {"num_gpus": 8}),
    ],
)
def test_dimensions_of_a_mesh_and_ranks_on_hosts_are_read(head: str, stated: dict[str, int]) -> None:
    (run,) = tables_of({"train.log": log(FORMS["words"], head=f"{head}\n")})["runs"].to_dicts()
    names = ("dp", "tp", "pp", "num_gpus", "num_nodes")
    assert {name: run[name] for name in names if run.get(name) is not None} == stated


@pytest.mark.parametrize("recompute", ["full", "selective", "none"])
def test_recomputation_is_read_from_arguments_in_our_own_words(recompute: str) -> None:
    head = f"Namespace(seq=2048, mbs=4, recompute='{recompute}', compile='none')\n"
    (run,) = tables_of({"train.log": log(FORMS["words"], head=head)})["runs"].to_dicts()
    assert run["recompute"] == recompute


def test_the_heading_of_launches_may_stand_below_a_rule() -> None:
    def launch(hour: int) -> str:
        mark = f"2025-10-18 {hour:02d}:46:50,232 - __main__ - INFO -"
        lines = ["=" * 80, "Starting the training of the detector", "=" * 80, "  per_device_train_batch_size: 4"]
        return "".join(f"{mark} {line}\n" for line in [*lines, "  gradient_accumulation_steps: 2", "Loading the data"])

    runs = tables_of({"train.log": launch(10) + launch(12) + launch(15)})["runs"]
    assert runs["gas"].to_list() == [2, 2, 2]


def test_a_setting_that_stands_for_another_one_leaves_its_value() -> None:
    head = "max_seq_len: 2048\nmodel:\n  max_seq_len: ${max_seq_len}\nglobal_train_batch_size: 512\n"
    (run,) = tables_of({"train.log": log(FORMS["words"], head=head)})["runs"].to_dicts()
    assert (run["gbs"], run["seq_len"] if "seq_len" in run else run["gbs_tokens"]) in ((512, 2048), (512, 2048 * 512))


def test_a_throughput_that_begins_after_some_steps_is_that_of_the_steps() -> None:
    def form(step: int, loss: float) -> str:
        rate = f"    throughput/tokens_per_sec: {139000 + step}\n" if step > STEPS // 2 + 2 else ""
        return f"[batch={step}/{STEPS}]:\n    loss/train/total: {loss:.4f}\n{rate}    time/train: 0.0040"

    steps = tables_of({"train.log": log(form)})["steps"].sort("step")
    assert steps["tokens_per_s"].drop_nulls().len() == STEPS // 2 - 2


LOGGERS = {
    "time, name and level": "2026-01-31 12:00:{:02d},123 - mytrainer - INFO - ",
    "name and time in brackets": "[trainer 12:00:{:02d}] ",
    "level and module": "INFO:trainer.{:d}: ",
}


@pytest.mark.parametrize("name", LOGGERS)
def test_a_logger_writes_in_front_of_a_header_as_it_does_in_front_of_rows(name: str) -> None:
    rows = [f"{step:6d}  {loss:9.4f}  {3e-4:.2e}   {52_000 + step:d}" for step, loss in enumerate(losses(), start=1)]
    lines = ["starting", "step      loss        lr    tok/s", *rows]
    text = "".join(f"{LOGGERS[name].format(at % 60)}{line}\n" for at, line in enumerate(lines))
    steps = tables_of({"train.log": text})["steps"].sort("step")
    assert steps["step"].to_list() == list(range(1, STEPS + 1))
    assert steps["loss"].to_list() == [round(loss, 4) for loss in losses()]
    assert steps["tokens_per_s"].to_list() == [52_000 + step for step in range(1, STEPS + 1)]


def test_a_table_is_read_in_a_log_of_which_a_dialect_knows_a_single_line() -> None:
    """The line is one of nanoGPT's, which others have copied."""
    head = "num decayed parameter tensors: 50, with 124,354,560 parameters\nstep,loss,lr\n"
    tables = tables_of({"train.log": log(lambda step, loss: f"{step},{loss:.4f},0.0003", head=head)})
    assert tables["steps"]["step"].to_list() == list(range(1, STEPS + 1))


def test_a_log_that_is_cut_behind_its_first_step_shows_that_step() -> None:
    """Values stand below the line with the step's number."""
    text = "== batch 1/4800 ==\n    memory/used: 3.6\n    loss/total: 11.0312\n"
    tables = tables_of({"train.log": text})
    assert tables["steps"].select("step", "loss").rows() == [(1, 11.0312)]
    assert tables["runs"]["steps_planned"].to_list() == [4800]


def test_rates_below_every_tenth_step_are_read_and_times_whose_steps_nobody_knows_are_not() -> None:
    def lines(step: int, loss: float) -> str:
        below = "\nperf | tokens/s/gpu=8913.5 mfu=0.41 max_mem=62GiB time=3.2s" if step % 10 == 0 else ""
        return f"train | step={step} loss={loss:.4f} lr=3.0e-04{below}"

    steps = tables_of({"train.log": log(lines)})["steps"]
    assert steps["step"].to_list() == list(range(1, STEPS + 1))
    tenth = steps.filter(pl.col("step") % 10 == 0)
    assert set(tenth["tokens_per_s_per_gpu"]) == {8913.5}
    assert set(tenth["mem_allocated_bytes"]) == {62 << 30}
    assert steps["tokens_per_s_per_gpu"].drop_nulls().len() == tenth.height
    assert steps["step_time_s"].is_null().all()


def test_a_rate_of_each_card_is_none_of_all() -> None:
    def line(step: int, loss: float) -> str:
        return (
            f"Completed step {step} of {STEPS} in 7.32 seconds with a loss of {loss:.4f} "
            f"(throughput 8957 tokens per second per GPU)"
        )

    head = "tp 1 | dp 16 | micro batch 2 | global batch 256 | seq len 4096\n"
    steps = tables_of({"train.log": log(line, head=head)})["steps"]
    assert set(steps["tokens_per_s_per_gpu"]) == {8957.0}
    assert steps["step_time_s"].is_null().all() or steps["step_time_s"].max() < 8


def test_rates_of_an_evaluation_below_the_steps_are_none_of_theirs() -> None:
    def lines(step: int, loss: float) -> str:
        below = "\neval | tokens/s/gpu=30112.5 acc=0.41" if step % 10 == 0 else ""
        return f"train | step={step} loss={loss:.4f} lr=3.0e-04{below}"

    assert tables_of({"train.log": log(lines)})["steps"]["tokens_per_s_per_gpu"].is_null().all()


def test_a_card_in_quotes_and_a_size_in_small_letters_are_read() -> None:
    head = "Config(model_size='8b', tensor_parallel=2, gpus=16, gpu='H100 SXM', micro_batch=1)\n"
    (run,) = tables_of({"train.log": log(FORMS["words"], head=head)})["runs"].to_dicts()
    assert (run["params"], run["num_gpus"], run["accelerator"]) == (8_000_000_000, 16, "H100 SXM")


def test_a_count_above_many_losses_is_no_step_of_theirs() -> None:
    text = "== batch 1/4800 ==\n" + log(lambda step, loss: f"step {step} loss {loss:.4f}")
    assert tables_of({"train.log": text})["steps"]["step"].to_list() == list(range(1, STEPS + 1))


def test_settings_are_read_under_chinese_names_and_a_model_by_the_end_of_its_path() -> None:
    head = "2026-01-06 11:41:35 - INFO - 模型: /data/models/Acme/Tiny-1.5B-Chat\n批次大小: 8, 梯度累积步数: 4\n最大上下文长度：4,096\n"
    (run,) = tables_of({"train.log": log(FORMS["words"], head=head)})["runs"].to_dicts()
    assert (run["model"], run["gas"], run["seq_len"]) == ("Tiny-1.5B-Chat", 4, 4096)
    (run,) = tables_of({"train.log": log(FORMS["words"], head="statistics: param_count = 141, numel = 333312\n")})[
        "runs"
    ].to_dicts()
    assert run.get("params") is None


def test_what_goes_on_with_the_text_of_a_logger_begins_no_launch() -> None:
    """A prompt is printed again before each phase, and once more behind the last."""
    prompt = "2025-09-18 23:52:16,548 - train - INFO - prompt: A talk with an assistant.\nUser: How many?\nAssistant: reply\n"
    phase = "".join(f"{FORMS['logger'](step, loss)}\n" for step, loss in enumerate(losses(), 1))
    (run,) = tables_of({"train.log": prompt + phase + prompt + "2025-09-19 00:00:00,000 - train - INFO - acc: 0.5\n"})[
        "runs"
    ].to_dicts()
    assert run["last_step"] == STEPS


def test_a_record_may_name_its_time_by_a_unit_alone_and_its_moment_in_seconds_since_1970() -> None:
    def form(step: int, loss: float) -> str:
        moment = 1_764_000_000 + step * 0.4125
        return (
            f'0: {{"t": {moment:.4f}, "it": {step}, "xent": {loss:.4f}, "sec": 0.4125, "tok_per_sec_per_gpu": 2695.4}}'
        )

    tables = tables_of({"train.log": log(form)})
    assert tables["steps"]["step_time_s"].unique().to_list() == [0.4125]
    (run,) = tables["runs"].to_dicts()
    assert run["started_at"].isoformat() == "2025-11-24T16:00:00.412500"
    assert run["ended_at"].isoformat() == "2025-11-24T16:00:16.500000"


def test_a_number_that_is_no_moment_is_none() -> None:
    tables = tables_of({"train.log": log(lambda step, loss: f"step {step} loss {loss:.4f} t 0.4125 ts 100{step:08d}")})
    assert tables["steps"]["ts"].null_count() == STEPS


@pytest.mark.parametrize(
    ("printed", "stage"),
    [
        ("sharding='zero1'", "1"),
        ("sharding=FULL_SHARD", "3"),
        ("strategy=fsdp2", "3"),
        ("dist_strategy=ddp", "0"),
        ("reshard_after_forward: False", "2"),
        ("zero=zero-2", "2"),
        ("zero_stage=ZeRO3", "3"),
        ("sharding=4", None),
        ("strategy=greedy", None),
    ],
)
def test_a_stage_of_zero_is_read_from_the_word_for_it(printed: str, stage: str | None) -> None:
    head = f"Namespace(n_layers=24, hidden=1024, ctx=2048, ffn=4096, remat='selective', {printed})\n"
    (run,) = tables_of({"train.log": log(FORMS["words"], head=head)})["runs"].to_dicts()
    assert run.get("zero_stage") == (stage and int(stage))
    assert (run["seq_len"], run["ffn_hidden_size"], run["recompute"]) == (2048, 4096, "selective")


@pytest.mark.parametrize(
    ("header", "cell", "moment"),
    [("time", "1764000000.5", "2025-11-24T16:00:00.500000"), ("timestamp", "2025-11-24T16:00:00", None)],
)
def test_a_cell_of_a_table_may_hold_seconds_since_1970(header: str, cell: str, moment: str | None) -> None:
    tables = tables_of({"train.log": log(lambda step, loss: f"{cell},{step},{loss:.4f}", head=f"{header},step,loss\n")})
    assert tables["steps"]["step"].to_list() == list(range(1, STEPS + 1))
    read = tables["steps"]["ts"][0]
    assert read.isoformat() == (moment or "2025-11-24T16:00:00")


def test_a_time_in_a_table_with_its_unit_is_a_duration() -> None:
    tables = tables_of({"train.log": log(lambda step, loss: f"{step} {loss:.4f} 0.4125", head="step loss time(s)\n")})
    assert tables["steps"]["step_time_s"].unique().to_list() == [0.4125]


def test_timers_under_the_name_of_the_counter_leave_it_alone() -> None:
    """DeepSpeed's timers print `| step: 8.59` between the steps of each rank."""
    lines = []
    for step, loss in enumerate(losses()):
        lines.append(f"[Rank 0] time (ms) | fwd: 31.{step % 10} | bwd: 66.3 | step: 5.{step % 7}1")
        lines += [f"[Rank {rank}] Step {5 * step}: loss={loss:.4f}, time=0.106s" for rank in (0, 1)]
    (run,) = tables_of({"train.log": "\n".join(["My trainer starts", *lines, ""])})["runs"].to_dicts()
    assert (run["parser"], run["step_basis"], run["steps_logged"]) == ("inferred", "step", STEPS)
    assert (run["first_step"], run["last_step"]) == (0, 5 * (STEPS - 1))


def test_a_command_that_is_printed_as_a_list_states_what_it_states_as_a_line() -> None:
    """DeepSpeed's launcher prints its own command as a line, and those of the ranks as lists."""
    options = ["train.py", "--num_layers", "12", "--seq_length", "512", "--batch_size", "8"]
    head = f"[launcher] cmd = python -u {' '.join(options)}\n[launcher] process 17 spawned with command: {options}\n"
    (run,) = tables_of({"train.log": log(FORMS["words"], head=head)})["runs"].to_dicts()
    assert (run["num_layers"], run["seq_len"], run["mbs"]) == (12, 512, 8)


def test_a_setting_is_read_where_its_value_is_not_cut_off() -> None:
    head = "python train.py --batch_size 4 --seq_len 5\n12 --lr 0.001\nModel: mine | Seq len: 512\n"
    (run,) = tables_of({"train.log": log(FORMS["pairs"], head=head)})["runs"].to_dicts()
    assert run["seq_len"] == 512
    head = 'python train.py --seq_len 512 -\n-lr 0.001\nConfiguration:\n{\n  "seq_len": 512,\n  "warmup": 5\n}\n'
    (run,) = tables_of({"train.log": log(FORMS["pairs"], head=head)})["runs"].to_dicts()
    assert run["seq_len"] == 512


def test_a_limit_beside_one_planned_epoch_is_no_plan() -> None:
    head = "Namespace(epochs=1, max_steps=1000000, lr=0.0003)\n"
    (run,) = tables_of({"train.log": log(FORMS["brackets"], head=head)})["runs"].to_dicts()
    assert (run["last_step"], run["steps_planned"], run["status"]) == (STEPS, STEPS, "completed")


@pytest.mark.parametrize(
    ("line", "params"),
    [
        ("LLM总参数量: 28.976 百万", 28_976_000),
        ("Model has 124.5 million trainable parameters", 124_500_000),
        ("Parameters: 1.2 billion", 1_200_000_000),
        ("number of parameters: 1,313.72M", 1_313_720_000),
        ("params: 1,313.72 M", 1_313_720_000),
        ("model size: 6.7 B", 6_700_000_000),
        ("Params (M): 124.4", 124_400_000),
        ("total params (in billions): 1.31", 1_310_000_000),
    ],
)
def test_parameters_in_words(line: str, params: int) -> None:
    (run,) = tables_of({"train.log": log(FORMS["pairs"], head=f"{line}\n")})["runs"].to_dicts()
    assert run["params"] == params


@pytest.mark.parametrize(
    "form",
    [
        lambda step, loss: f"Epoch {step}/90\nTrain Loss: {loss:.4f}, Train Acc: 58.05%",
        lambda step, loss: f"metrics after epoch {step}:\nTrain loss: {loss:.4f}\nEpoch {step}/90 done in 4.5 s",
    ],
    ids=["above its losses", "behind its losses"],
)
def test_epochs_that_are_counted_up_to_a_number_are_planned(form: Callable[[int, float], str]) -> None:
    (run,) = tables_of({"train.log": log(form)})["runs"].to_dicts()
    assert (run["last_step"], run["steps_planned"]) == (STEPS, 90)


def test_a_process_that_sees_one_gpu_is_one_of_its_launch() -> None:
    head = "torchrun --nproc_per_node=8 run.py --lr 1e-4\n" + "device: cuda:3 n_gpu: 1, distributed training: True\n"
    (run,) = tables_of({"train.log": log(FORMS["pairs"], head=head)})["runs"].to_dicts()
    assert (run.get("num_gpus"), run["gpus_per_node"]) == (None, 8)


def by_ranks(ranks: Sequence[int], head: str = "") -> str:
    return log(
        lambda step, loss: "\n".join(
            f"{rank}: step {step}/{STEPS} loss {loss + rank / 100:.4f} tokens/s {9000 + step + rank}" for rank in ranks
        ),
        head=head,
    )


@pytest.mark.parametrize(
    ("ranks", "head", "gpus"),
    [((0, 1, 2, 3), "", 4), ((0, 2, 3), "", None), ((4, 5, 6, 7), "", None), ((0, 1), "num_gpus: 16\n", 16)],
    ids=["all", "one is missing", "of another node", "stated otherwise"],
)
def test_ranks_that_print_their_steps_are_the_gpus(ranks: Sequence[int], head: str, gpus: int | None) -> None:
    (run,) = tables_of({"train.log": by_ranks(ranks, head)})["runs"].to_dicts()
    assert (run["steps_logged"], run.get("num_gpus")) == (STEPS, gpus)


def test_a_rate_that_each_rank_prints_is_not_that_of_the_job() -> None:
    (run,) = tables_of({"train.log": by_ranks((0, 1, 2, 3))})["runs"].to_dicts()
    assert run["tokens_per_s"] is None


def test_a_key_that_names_an_evaluation_names_its_own_value_only() -> None:
    def form(step: int, loss: float) -> str:
        return f'{{"step": {step}, "loss": {loss:.4f}, "val_loss": 3.5, "grad_norm": 0.5, "tokens_per_second": 9000.5}}'

    tables = tables_of({"train.log": log(form)})
    assert tables["steps"]["grad_norm"].unique().to_list() == [0.5]
    assert tables["runs"]["tokens_per_s"].to_list() == [9000.5]


def test_losses_below_epochs_need_no_sign_behind_their_names() -> None:
    text = log(lambda step, loss: f"Epoch [{step}/{STEPS}]\nTraining loss {loss:.4f}\nTesting loss 3.5", head="")
    tables = tables_of({"train.log": text})
    (run,) = tables["runs"].to_dicts()
    assert (run["last_step"], run["steps_planned"]) == (STEPS, STEPS)
    assert tables["steps"].sort("step")["loss"].to_list() == [round(loss, 4) for loss in losses()]


def test_the_share_of_a_bar_is_no_loss_and_hides_none() -> None:
    """Bars that are drawn below each epoch's line, named like a loss, with the loss behind the last of them."""

    def epoch(number: int, loss: float) -> str:
        bars = [f"Training: {25 * at:3d}%|###  | {at}/4 [00:00<00:01,  5.07it/s]" for at in range(5)]
        stamp = f"2026-01-31 12:{number:02d}:01,331 - INFO - "
        values = f"Validation: 100%|###| 9/9 [00:01<00:00, 66.38it/s]{stamp}Val Loss: {loss + 1:.4f}"
        return "\n".join(
            [
                f"{stamp}Epoch {number}/{STEPS}",
                "",
                "\r".join([*bars, bars[-1]]) + f"{stamp}Train Loss: {loss:.4f}",
                values,
            ]
        )

    text = log(epoch, head="Train: 100, Val: 4623, Test: 4624\n", tail="Fine-tuning completed.\n")
    (run,) = tables_of({"finetune.log": text})["runs"].to_dicts()
    assert (run["steps_logged"], run["last_step"], run["steps_planned"]) == (STEPS, STEPS, STEPS)
    assert run["last_loss"] == pytest.approx(losses()[-1], abs=1e-4)
    assert run["status"] == "completed"


def test_lines_that_are_indented_below_the_heading_of_an_evaluation_are_no_steps() -> None:
    """They count as the steps do, and have their loss beside the number; that of a step stands below it."""

    def step(number: int, loss: float) -> str:
        lines = [
            f"[train][1] progress: 1/1 step: {100 * number}, speed: 2.5 steps/s",
            "\tlr: 1e-5",
            f"\tloss: {loss:.4f}",
        ]
        if number % 10 == 0:
            lines += ["Evaluation:", *(f"\tstep {at}:loss: {loss + 1:.4f}, ppl: 9.5" for at in range(1, 60))]
        return "\n".join(lines)

    tables = tables_of({"train.log": log(step)})
    (run,) = tables["runs"].to_dicts()
    assert (run["steps_logged"], run["last_step"], run["step_time_s"]) == (STEPS, 100 * STEPS, pytest.approx(0.4))
    assert tables["steps"].sort("step")["loss"].to_list() == pytest.approx(losses(), abs=1e-4)


def test_epochs_count_where_steps_are_logged_at_the_begin_only() -> None:
    text = "".join(f"[Epoch 000][Step {50 * at:04d}/0500] Loss: {11 - at:.4f} | LR: 3.0e-06\n" for at in range(5))
    text += "".join(f"[Epoch {at:03d}] train_loss={one:.4f} val_loss=9.5\n" for at, one in enumerate(losses()))
    (run,) = tables_of({"train.log": text})["runs"].to_dicts()
    assert (run["step_basis"], run["last_step"], run["steps_planned"]) == ("whole_epoch", STEPS - 1, None)
    assert run["last_loss"] == pytest.approx(losses()[-1], abs=1e-4)


@pytest.mark.parametrize("unit", ["records/second", "utterances/s", "frobs per second"])
def test_what_is_no_token_is_none_of_a_throughput(unit: str) -> None:
    form = f"[Iteration {{0}}] Throughput is 2091.89{{0}} {unit}. Loss is {{1:.4f}}."
    steps = tables_of({"train.log": log(form.format)})["steps"]
    assert steps["loss"].null_count() == 0
    assert steps["tokens_per_s"].null_count() == steps.height


def test_a_global_counter_beyond_the_total_of_another_one_counts() -> None:
    step = "   --> STEP: 10/13 -- GLOBAL_STEP: 25\n     | > loss: 35.61561  (36.34546)\n     | > current_lr: 0.0001\n"
    (run,) = tables_of({"train.log": f" > TRAINING (2020-08-19 05:42:26)\n{step}"})["runs"].to_dicts()
    assert (run["last_step"], run["steps_planned"], run["last_loss"]) == (25, None, 35.61561)


def test_a_mean_batch_is_no_setting() -> None:
    lines = ['{"epoch": 1, "valid_loss": "8.138", "valid_bsz": "39.7"}', '{"train_loss": "9.718", "train_bsz": "318"}']
    found = list(stated(enumerate(lines, 1)))
    assert {one.value for one in found} == {"318"}
    assert not without_measures(found, pl.Series(lines))
    assert without_measures(found, pl.Series(lines[1:])) == found


@pytest.mark.parametrize("printed", ["params: 6.70B", "params=6.70B", "model | params: 124.4M"])
def test_a_number_of_parameters_with_a_fraction_of_its_unit_is_a_setting(printed: str) -> None:
    found = list(stated([(1, f"2026-11-09 08:06:40,194 | INFO  | nova.trainer | {printed}")]))
    assert [one.column for one in without_measures(found, pl.Series([one.text for one in found]))] == ["params"]


def test_launches_into_one_log_state_their_own_settings() -> None:
    """The last one states those of the first again, in the same words and without a time."""

    def launch(batch: int, accumulation: int) -> str:
        head = f"Starting the trainer of ours\nTrainer settings\n  per_device_train_batch_size: {batch}\n"
        head += f"  gradient_accumulation_steps: {accumulation}\n  max_seq_length: 512\n"
        return log(FORMS["pairs"], head=head)

    runs = tables_of({"train.log": launch(4, 2) + launch(8, 4) + launch(4, 2)})["runs"].sort("attempt")
    assert runs.select("mbs", "gas", "seq_len").rows() == [(4, 2, 512), (8, 4, 512), (4, 2, 512)]


def test_of_nested_settings_the_outermost_is_the_trainers() -> None:
    dump = (
        "TrainerConfig(\n    schedulers=Schedulers(\n        warm=Scheduler(\n            max_steps=200,\n        ),\n"
        "    ),\n    max_num_iterations=3000,\n    mixed_precision=True,\n)\n"
    )
    (run,) = tables_of({"train.log": log(FORMS["pairs"], head=dump)})["runs"].to_dicts()
    assert run["steps_planned"] == 3000


@pytest.mark.parametrize(
    ("line", "column", "value"),
    [
        ("Trainable parameters: 11,796,480 (0.77% of 1,533,189,120)", "params", 1533189120),
        ("Trainable parameters: 11,796,480 (0.77%)", "params", None),
        ("trainable parameters: 11,796,480 (100.0%)", "params", 11796480),
        ("Number of trainable parameters: 11,796,480", "params", 11796480),
        ("Batch size: 4 × 32 = 128 (effective)", "gbs", 128),
        ("Prepared 138441 sequences of length 64", "seq_len", 64),
        ("sequences of length 64.5 on average", "seq_len", None),
    ],
)
def test_values_that_stand_in_a_sentence(line: str, column: str, value: int | None) -> None:
    (run,) = tables_of({"train.log": log(FORMS["pairs"], head=f"{line}\n")})["runs"].to_dicts()
    assert run.get(column) == value


@pytest.mark.parametrize("form", ["[warm] Epoch {0}/9 -- train: 2.52  val: 2.61  (70s)", "Epoch {0} | mean loss 2.5"])
def test_steps_that_begin_anew_behind_the_line_that_sums_their_epoch_up(form: str) -> None:
    """The loss is the epoch's mean so far, which changes within an epoch as much as at its begin."""
    parts = []
    for epoch in (1, 2, 3):
        shown = (f"  step {step:4d}/100  loss {2.6 - epoch / 10 - step / 5000:.4f}\n" for step in range(20, 101, 20))
        parts.append("".join(shown) + form.format(epoch) + "\n")
    (run,) = tables_of({"train.log": "training\n" + "".join(parts) + "  step   20/100  loss 2.2000\n"})[
        "runs"
    ].to_dicts()
    assert (run["steps_logged"], run["first_step"], run["last_step"]) == (16, 20, 320)


def test_a_global_counter_is_none_of_an_epoch() -> None:
    form = "train | data_epochs  0/10 | inner iter: {0:3d}/  8 | global iter: {1:6d}/  5000| tot_loss: {2:.4f} | lr: 8.5e-07\n"
    text = "".join(form.format(step % 8, step, loss) for step, loss in enumerate(losses(), 27))
    (run,) = tables_of({"train.log": text})["runs"].to_dicts()
    assert (run["steps_planned"], run["first_step"], run["last_step"]) == (5000, 27, 26 + STEPS)
    assert run["last_loss"] == round(losses()[-1], 4)


@pytest.mark.parametrize(
    ("head", "params"),
    [
        ("LoRA rank: 8\nTrainable parameters: 11,796,480\n", None),
        ("LoRA rank: 8\nTrainable parameters: 11,796,480 (0.77% of 1,533,189,120)\n", 1_533_189_120),
        ("冻结主干\n可训练参数量: 0.262M\n", None),
        ("applying adapters: 0.26M trainable params\n", None),
        ("use_lora: False\nTrainable parameters: 11,796,480\n", 11_796_480),
        ("可训练参数量: 25.83M\n", 25_830_000),
        ("LoRA rank: 8\nTrainable parameters: 11,796,480\nTotal parameters: 1,533,189,120\n", 1_533_189_120),
    ],
)
def test_trained_parameters_are_the_models_unless_it_has_adapters(head: str, params: int | None) -> None:
    (run,) = tables_of({"train.log": log(FORMS["pairs"], head=head)})["runs"].to_dicts()
    assert run.get("params") == params


def test_a_number_in_what_a_name_says_of_its_value_is_no_value() -> None:
    tables = tables_of(
        {"train.log": log(lambda step, loss: f"Batch {step}, Training Loss (avg over last 100): {loss}")}
    )
    steps = tables["steps"].sort("step")
    assert steps["step"].to_list() == list(range(1, STEPS + 1))
    assert steps["loss"].to_list() == losses()


def test_a_bar_that_moves_before_it_shows_the_loss_of_its_step() -> None:
    shown = [f"{loss:.4f}" for loss in losses()]

    def bar(step: int, loss: str) -> str:
        return f"Train:  10%|#    | {step}/{STEPS} [00:15<01:28, 2.48s/it, Loss={loss}, Aux=0.5]"

    text = "".join(f"{bar(step, shown[max(step - 2, 0)])}\n{bar(step, loss)}\n" for step, loss in enumerate(shown, 1))
    steps = tables_of({"train.log": f"starting the run\n{text}"})["steps"].sort("step")
    assert steps["loss"].to_list() == [float(loss) for loss in shown]


def in_epochs(head: str, *, epochs: int = 3) -> pl.DataFrame:
    """The run of a log with a line each 10 of the 47 steps of an epoch."""
    lines = [
        f"Epoch: [{epoch}], step: [{step}], loss: {9 / (1 + epoch + step / 47):.4f}"
        for epoch in range(1, epochs + 1)
        for step in range(10, 48, 10)
    ]
    return tables_of({"train.log": f"{head}starting\n" + "\n".join(lines) + "\n"})["runs"]


@pytest.mark.parametrize(
    ("head", "last_step", "planned"),
    [
        ("Num Iters: 47\nOptim Steps: 470\n", 2 * 47 + 40, 470),
        ("max_steps: 470\n", 2 * 47 + 40, 470),
        ("Num Iters: 47\n", 2 * 47 + 40, None),  # of each epoch, of which there may be any number
        ("max_steps: 479\n", 3 * 40, 479),  # no whole number of such epochs
        ("", 3 * 40, None),
    ],
)
def test_an_epoch_is_as_long_as_the_planned_steps_tell(head: str, last_step: int, planned: int | None) -> None:
    (run,) = in_epochs(head).to_dicts()
    assert (run["last_step"], run["steps_planned"]) == (last_step, planned)


def test_the_last_launch_without_a_step_shows_no_end() -> None:
    begin = "Loaded configuration from run.yaml\nLoading tokenizer...\n"
    one = log(lambda step, loss: f"step {step} loss {loss:.4f}", head=begin)
    runs = tables_of({"train.log": one + one + begin + "Loading model...\n"})["runs"].sort("line_no")
    assert runs["steps_logged"].to_list() == [STEPS, STEPS, None]
    assert "completed" not in runs["status"].to_list()


def test_fewer_steps_than_were_done_are_not_those_that_are_planned() -> None:
    head = "Number of train images: 640, iters: 16\nconfig:\n  niter: 600\nstarting\n"
    (run,) = tables_of({"train.log": log(lambda step, loss: f"iter {step} loss {loss:.4f}", head=head)})[
        "runs"
    ].to_dicts()
    assert run["steps_planned"] == 600


def test_the_loss_of_pixels_is_the_loss_where_it_stands_alone() -> None:
    steps = tables_of({"train.log": log(lambda step, loss: f"<iter: {step}, lr:(2.000e-04,)> l_pix: {loss:.4e}")})[
        "steps"
    ]
    assert steps.height == STEPS
    assert steps["loss"].null_count() == 0


def test_steps_that_a_models_answers_number_begin_no_epoch_anew() -> None:
    answer = "**Step 1:** Add the points.\n**Step 2:** Divide them by 2.\n"
    text = "".join(
        ("=== Epoch 1/2 ===\n", "=== Epoch 2/2 ===\n")[step // 21] * (step in (1, 21))
        + f"{answer}Step: {step} | Loss: {loss}\n"
        for step, loss in enumerate(losses(), 1)
    )
    steps = tables_of({"train.log": text})["steps"]
    assert steps["step"].to_list() == list(range(1, STEPS + 1))


def test_steps_that_are_logged_once_an_epoch_may_be_many() -> None:
    rows = (
        f'{{"epoch": {step}, "step": {7142 * step}, "train_loss": {loss:.4f}}}' for step, loss in enumerate(losses(), 1)
    )
    (run,) = tables_of({"train_log.jsonl": "\n".join(rows) + "\n"})["runs"].to_dicts()
    assert (run["last_step"], run["step_basis"]) == (7142 * STEPS, "step")


def test_counters_that_are_shortened_go_on_as_far_as_they_are_printed() -> None:
    def line(at: int, loss: float) -> str:
        step = 200 * at
        return f"step:{step if step < 1000 else f'{step / 1000:.0f}K'} ep:{at} loss:{loss:.3f} updt_s:0.496"

    tables = tables_of({"train.log": log(line)})
    (run,) = tables["runs"].to_dicts()
    assert (run["first_step"], run["last_step"], run["last_loss"]) == (200, 8000, round(losses()[-3], 3))
    # Several lines print one number: the first of each is kept, and the others are rejects.
    assert run["steps_logged"] + tables["rejects"].filter(pl.col("table") == "steps").height >= 4 + 8


@pytest.mark.parametrize("epochs", [3, 5])
def test_the_full_bar_of_the_last_epoch_is_the_end(epochs: int) -> None:
    def epoch(number: int) -> str:
        return "".join(f"Epoch {number}/3 {at * 25:3d}% loss={9 / (5 * number + at):.4f}\n" for at in range(5))

    text = "".join(map(epoch, range(1, 4))).replace("/3", f"/{epochs}")
    (run,) = tables_of({"train.log": text})["runs"].to_dicts()
    assert (run["status"] == "completed") == (epochs == 3)


def test_each_training_of_a_log_may_call_its_loss_by_another_name() -> None:
    def training(name: str, steps: int) -> str:
        rows = (f"it {step} {name} {3 + 4 / (1 + step):.4f} lr 1e-4\n" for step in range(steps))
        return "loading the data\n" + "".join(rows)

    lengths = {"recon_loss": 30, "ce_loss": 40, "kd_loss": 20}
    tables = tables_of({"train.log": "".join(training(name, steps) for name, steps in lengths.items())})
    assert sorted(tables["runs"]["last_step"]) == [19, 29, 39]
    assert tables["steps"]["loss"].null_count() == 0


def test_losses_with_names_of_their_own_in_lines_by_turns_are_parts() -> None:
    rows = (f"it {step} {name} {3 + 4 / (1 + step):.4f}\n" for step in range(40) for name in ("disc_loss", "gen_loss"))
    tables = tables_of({"train.log": "".join(rows)})
    assert "steps" not in tables or tables["steps"]["loss"].drop_nulls().is_empty()


def test_epochs_with_measures_of_their_own_names_are_trainings() -> None:
    def training(mode: str) -> str:
        head = f"=== {mode} ===\nseed: 0\nmode: {mode}\ndevice: cuda\nbatch_size: 32\nlr: 0.0004\n"
        return head + "".join(f"[epoch {epoch}] FG-ARI=0.{45 - epoch} mBO=0.2{epoch}\n" for epoch in range(10))

    tables = tables_of({"train.log": training("baseline") + training("trm") + training("coupled")})
    assert tables["runs"].select("first_step", "last_step").rows() == [(0, 9)] * 3
    assert tables_of({"a.log": "".join(f"epoch {at}: 0.{at}1\n" for at in range(10))})["runs"].is_empty()


@pytest.mark.parametrize(("rate", "column"), [(6_245, "tokens_per_s_per_gpu"), (37_470, "tokens_per_s")])
def test_a_rate_is_of_one_card_or_of_all_by_the_batch_of_each_card(rate: int, column: str) -> None:
    head = "+ python train.py --world_size 6 --batch_size 12 --gradient_accumulation_steps 5 --seq_len 1024\n"
    head += "  LR: 0.0006 | Batch/GPU: 12 | GA: 5\n"
    text = "".join(
        f"[Step {step:04d}/1200] train_loss={9 - step / 300:.4f} lr=0.000451 step_time=9.838s tp={rate + step % 7} tok/s\n"
        for step in range(10, 900, 10)
    )
    steps = tables_of({"train.log": head + text})["steps"]
    assert steps[column].median() == pytest.approx(rate, rel=0.01)
    other = {"tokens_per_s", "tokens_per_s_per_gpu"} - {column}
    assert steps[other.pop()].null_count() == steps.height


def test_a_rate_of_an_unknown_number_of_cards_stays_that_of_the_job() -> None:
    head = "+ python train.py --batch_size 1 --seq_len 2048\n"
    text = "".join(
        f"Step {step} | Loss: {9 - step / 300:.4f} | Tokens per second: {6_552 + step % 7} | step_time=0.3126s\n"
        for step in range(10, 900, 10)
    )
    steps = tables_of({"train.log": head + text})["steps"]
    assert steps["tokens_per_s_per_gpu"].null_count() == steps.height


def test_the_lines_below_a_step_may_have_dots_between_names_and_values() -> None:
    def step(number: int) -> str:
        values = {"train loss": f"{2 + 8 / number:.4f}", "time": "1.250 s", "throughput": "17348 tokens/s"}
        rows = "".join(f"   {name} {'.' * (18 - len(name))} {value}\n" for name, value in values.items())
        return f"=== iteration {number} of 30 ===\n{rows}"

    steps = tables_of({"train.log": "".join(map(step, range(1, 31)))})["steps"]
    assert steps["step"].to_list() == list(range(1, 31))
    assert steps["loss"].null_count() == 0
    assert steps["step_time_s"].unique().to_list() == [1.25]


def test_nested_records_of_ones_own_are_none_of_transformers() -> None:
    def record(step: int) -> str:
        train = {"loss": round(2 + 8 / step, 4), "grad_norm": 1.2}
        return json.dumps(
            {"iteration": step, "train": train, "perf": {"iter_ms": 812.5, "tokens_per_sec_per_gpu": 4e3}}
        )

    tables = tables_of({"metrics.jsonl": "".join(record(step) + "\n" for step in range(1, 41))})
    (run,) = tables["runs"].to_dicts()
    assert (run["parser"], run["last_step"]) == ("inferred", 40)
    assert tables["steps"]["step_time_s"].unique().to_list() == [0.8125]
    assert tables["steps"]["tokens_per_s_per_gpu"].unique().to_list() == [4000.0]
