"""Logs of no known format, read by a dialect file that somebody has confirmed or corrected."""

from __future__ import annotations

from pathlib import Path

import pytest

from sweepscope.pipeline.ingest.batch import Tables, parse_batch
from sweepscope.pipeline.ingest.dialect_files import in_force, remember
from sweepscope.pipeline.ingest.infer_logs import infer_log
from sweepscope.pipeline.ingest.parser_versions import current_versions
from sweepscope.pipeline.ingest.plan import find
from sweepscope.pipeline.io.reader import Reader
from sweepscope.pipeline.store.home import Home
from sweepscope.schemas.tables.inference import DOUBTFUL_SPEED
from tests.pipeline.ingest_in_memory import LATER
from tests.unknown_trainer import STEPS, write_sweep, zephyr_log


@pytest.fixture
def home(tmp_path: Path) -> Home:
    return Home(tmp_path / "home")


def inferred(log: Path, *changes: tuple[str, str], constants: str = "") -> str:
    """The dialect file of a log with some of its text replaced."""
    text = infer_log(str(log), lambda: Reader(str(log))).toml
    for old, new in changes:
        assert old in text, text
        text = text.replace(old, new)
    return text + (f"\n[[constants]]\n{constants}\n" if constants else "")


def confirm(home: Home, tmp_path: Path, text: str) -> None:
    path = tmp_path / "given.toml"
    path.write_text(text)
    remember(home, [str(path)])


def tables(home: Home, folder: Path) -> Tables:
    dialects = in_force(home).dialects
    return parse_batch(find([str(folder)], dialects=dialects), now=LATER, dialects=dialects)


def test_what_a_corrected_file_says_counts(home: Home, tmp_path: Path) -> None:
    logs = write_sweep(tmp_path / "sweep")
    before = tables(home, tmp_path / "sweep")
    assert before["runs"]["step_time_s"].to_list() == [None] * 3
    assert before["inferred_dialects"]["dialect_text"].n_unique() == 1
    corrected = inferred(
        logs[0],
        ("my-trainer", "zephyr"),
        ("took {_}", "took {step_time:s}"),
        constants=f'folder = "{tmp_path}/sweep"\ngbs = 4\nseq_len = 2048\nnum_gpus = 8',
    )
    confirm(home, tmp_path, corrected)
    after = tables(home, tmp_path / "sweep")
    runs = after["runs"].sort("source_path")
    assert runs["framework"].to_list() == runs["parser"].to_list() == ["zephyr"] * 3
    assert runs["step_time_s"].to_list() == [0.4, 0.5, 0.6]
    assert runs["tokens_per_s_per_gpu"].to_list() == pytest.approx([4 * 2048 / 8 / s for s in (0.4, 0.5, 0.6)])
    assert after["inferred_columns"].is_empty()
    stated = after["settings"].filter(name="num_gpus")
    assert stated["setting_source"].unique().to_list() == ["dialect_file"]


def test_a_log_of_the_same_trainer_without_a_step_is_of_that_trainer(home: Home, tmp_path: Path) -> None:
    (log,) = write_sweep(tmp_path / "sweep", 1)
    dead = tmp_path / "sweep" / "dead" / "train.log"
    dead.parent.mkdir()
    dead.write_text(zephyr_log(steps=0) + "torch.OutOfMemoryError: CUDA out of memory.\n")
    confirm(home, tmp_path, inferred(log, ("my-trainer", "zephyr")))
    runs = tables(home, tmp_path / "sweep")["runs"]
    assert runs["framework"].to_list() == ["zephyr"] * 2


def test_other_logs_stay_as_they_were(home: Home, tmp_path: Path) -> None:
    (log,) = write_sweep(tmp_path / "sweep", 1)
    others = {
        "unlike": "".join(f"step {n} :: loss {9 - n / 9:.3f} dt={400 + n % 3}.5ms\n" for n in range(1, 31)),
        "alike": "".join(f"it {n}/40 | nll {9 - n / 9:.3f} | speed {900 + n}\n" for n in range(1, 31)),
        "nanogpt": "".join(f"iter {n}: loss 2.3, time {400 + n}.00ms, mfu 3.20%\n" for n in range(30)),
    }
    for name, text in others.items():
        (tmp_path / "sweep" / name).mkdir()
        (tmp_path / "sweep" / name / "train.log").write_text(text)
    before = tables(home, tmp_path / "sweep")["runs"]
    confirm(home, tmp_path, inferred(log, ("my-trainer", "zephyr")))
    after = tables(home, tmp_path / "sweep")["runs"]
    changed = before.join(after, on=["source_path", "parser"], how="anti")["source_path"].to_list()
    assert changed == [str(log)]


def test_a_file_for_unknown_logs_makes_only_those_be_read_again(home: Home, tmp_path: Path) -> None:
    (log,) = write_sweep(tmp_path / "sweep", 1)
    plain = current_versions(in_force(home).dialects)
    confirm(home, tmp_path, inferred(log, ("my-trainer", "zephyr")))
    first = current_versions(in_force(home).dialects)
    assert {name for name, version in first.items() if plain.get(name) != version} == {"", "inferred", "zephyr"}
    confirm(home, tmp_path, inferred(log, ("my-trainer", "zephyr"), ("took {_}", "took {step_time:ms}")))
    second = current_versions(in_force(home).dialects)
    assert {name for name, version in second.items() if first[name] != version} == {"", "inferred", "zephyr"}


def test_a_growing_log_is_read_like_a_whole_one(home: Home, tmp_path: Path) -> None:
    (log,) = write_sweep(tmp_path / "sweep", 1)
    confirm(home, tmp_path, inferred(log, ("my-trainer", "zephyr"), ("took {_}", "took {step_time:s}")))
    whole = log.read_text()
    for steps in (1, 2, STEPS):
        log.write_text("\n".join(whole.splitlines()[: 4 + steps]) + "\n")
        (run,) = tables(home, tmp_path / "sweep")["runs"].to_dicts()
        assert (run["parser"], run["steps_logged"], run["step_time_s"]) == ("zephyr", steps, 0.4)


def test_the_constants_of_the_nearest_folder_count(home: Home, tmp_path: Path) -> None:
    logs = write_sweep(tmp_path / "sweep")
    near = f'folder = "{logs[1].parent}"\ngbs = 16\n\n[[constants]]\ngbs = 4\nnum_gpus = 8'
    confirm(home, tmp_path, inferred(logs[0], ("my-trainer", "zephyr"), constants=near))
    runs = tables(home, tmp_path / "sweep")["runs"].sort("source_path")
    assert runs["gbs"].to_list() == [4, 16, 4]
    assert runs["num_gpus"].to_list() == [8, 8, 8]


@pytest.mark.parametrize(
    ("constants", "reason"),
    [
        ("gbs = 0", r"gbs is 0. Write a number above 0"),
        ('gbs = "4"', "gbs is '4'. Write a number above 0"),
        ("model = 7", "model is 7. Write a text between quotes"),
        ("batch = 4", "batch is no column here"),
        ("loss = 4", r"loss belongs into a \[\[step\]\]"),
    ],
)
def test_a_constant_that_cannot_be_is_refused(constants: str, reason: str, home: Home, tmp_path: Path) -> None:
    from sweepscope.pipeline.errors import UsageError

    (log,) = write_sweep(tmp_path / "sweep", 1)
    with pytest.raises(UsageError, match=reason):
        confirm(home, tmp_path, inferred(log, constants=constants))


HEAD = "model: llama-1b\nworld_size: 8\nseq_len: 2048\nglobal_batch_size: 4\n"


@pytest.mark.parametrize(
    ("value", "is_sure"),
    [
        ("step_time 0.41{n}", False),
        ("step_time 41{n}.0ms", True),
        ("tok/s 9000.{n}", False),
        ("total tok/s 9000.{n}", True),
    ],
)
def test_a_speed_that_is_a_guess_keeps_a_run_out_of_rankings_until_it_is_confirmed(
    value: str, *, is_sure: bool, home: Home, tmp_path: Path
) -> None:
    log = tmp_path / "sweep" / "train.log"
    log.parent.mkdir()
    steps = (f"it {n}/40 | nll {9 - n / 9:.3f} | {value.format(n=n % 10)}\n" for n in range(1, 41))
    log.write_text(HEAD + "".join(steps) + "all done\n")
    (run,) = tables(home, log.parent)["runs"].to_dicts()
    assert run["tokens_per_s_per_gpu"] > 0
    assert run["quarantine_reason"] == (None if is_sure else DOUBTFUL_SPEED)
    confirm(home, tmp_path, inferred(log, ("my-trainer", "zephyr")))
    (run,) = tables(home, log.parent)["runs"].to_dicts()
    assert (run["parser"], run["quarantine_reason"]) == ("zephyr", None)
