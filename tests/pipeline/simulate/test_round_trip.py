"""parse(render(run)) == run: what a simulated run's files say is what ingest reads, whatever noise lies over them."""

from __future__ import annotations

import math
import os
import re
import tempfile
from collections.abc import Mapping
from dataclasses import asdict, replace
from datetime import datetime
from itertools import pairwise
from pathlib import Path

import polars as pl
import pytest
from hypothesis import HealthCheck, Phase, example, given, settings
from hypothesis import strategies as st

from sweepscope.pipeline.derive.complete import complete_runs
from sweepscope.pipeline.ingest.discover import discover
from sweepscope.pipeline.ingest.read_batch import read_batch
from sweepscope.pipeline.io.files import list_files
from sweepscope.pipeline.logs.engine import extract
from sweepscope.pipeline.logs.registry import DIALECTS
from sweepscope.pipeline.logs.runs.assemble import assemble
from sweepscope.pipeline.simulate.generate import FRAMEWORKS, generate
from sweepscope.pipeline.simulate.render import render
from sweepscope.pipeline.simulate.renderers.registry import RENDERERS, stated
from sweepscope.pipeline.simulate.sweep import write_run
from sweepscope.pipeline.simulate.truth import Layout, Noise, SimulatedRun, SimulatedStep
from sweepscope.pipeline.text import lines
from sweepscope.schemas import vocab
from tests.pipeline.simulate.factory import make_exact, make_run, runs
from tests.properties import THOROUGH, stated_examples

Tables = dict[str, pl.DataFrame]
NOW = datetime(2027, 1, 1)
# The evidence of each ending; a run that ended well or just stops holds none of these.
_EVIDENCE = {
    ("cancelled", "scancel"): "cancelled",
    ("cancelled", "ctrl_c"): "interrupted",
    ("cancelled", "sigterm"): "sigterm",
    ("completed", "traceback_after"): "exception",
    ("completed", "time_limit_after"): "timeout",
    ("crash", "assertion"): "exception",
    ("crash", "value"): "exception",
    ("crash", "segfault"): "child_failed",
}
_FATAL = {*vocab.EVENT_KIND} - {
    "launch",
    "run_header",
    "training_end",
    "epilogue",
    "tracker_closed",
    "finished",
    "status_file",
    "config_conflict",
    "nan_loss",
    "ended",
}

# A run is a few hundred lines: shrinking one takes minutes and tells little more than the difference itself. The
# examples are the same every time, so that a change is judged by what it changes; raise max_examples to explore.
_PROFILE = settings(
    max_examples=100 if THOROUGH else 6,
    derandomize=True,
    deadline=None,
    phases=(Phase.explicit, Phase.reuse, Phase.generate),
    suppress_health_check=(HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.large_base_example),
)


def _parse(root: Path) -> Tables:
    batch = read_batch(discover(list_files(str(root)), is_simulated=lambda _directory: True))
    tables = assemble(batch.sources, batch.facts, batch.spans, batch.sidecars, now=NOW)
    return {
        **tables,
        "runs": complete_runs(tables["runs"]).runs,
        "rejects": pl.concat([tables["rejects"], batch.rejects]),
    }


def _same(truth: object, got: object) -> bool:
    if isinstance(truth, float) and isinstance(got, float):
        return (math.isnan(truth) and math.isnan(got)) or math.isclose(truth, got, rel_tol=1e-9, abs_tol=1e-15)
    return truth == got


def _mismatches(truth: Mapping[str, object], got: Mapping[str, object], where: str) -> list[str]:
    return [
        f"{where}: {name} is {value!r}, read as {got.get(name)!r}"
        for name, value in truth.items()
        if not _same(value, got.get(name))
    ]


def _job_id(run: SimulatedRun, log: Path) -> str | None:
    """torchtitan's log is not named after its job: only what Slurm says in it tells."""
    text = "".join(file.read_text("utf-8", "replace") for file in log.parent.iterdir() if file.is_file())
    is_named = re.search(rf"slurmstepd: error: .*(?:STEP |JOB |StepId=){run.job_id}\b", text)
    return str(run.job_id) if is_named or run.framework != "torchtitan" else None


def differences(run: SimulatedRun, tables: Tables, root: Path) -> list[str]:
    """Every way in which the parsed tables differ from the run's truth; empty when they agree."""
    renderer = RENDERERS[run.framework]
    log = str(root / run.path / renderer.log_name(run))
    rows = tables["runs"].filter(pl.col("run_dir") == str(root / run.path)).to_dicts()
    if len(rows) != 1:
        return [f"{run.path}: {len(rows)} runs, expected one"]
    row = rows[0]
    steps = tables["steps"].filter(pl.col("run_id") == row["run_id"]).sort("step").to_dicts()
    rejects = tables["rejects"].filter(pl.col("file") == log)
    last = run.steps[-1] if run.steps else None
    finite = [step.loss for step in run.steps if step.loss is not None and math.isfinite(step.loss)]
    outcome = {
        "source_path": log,
        "framework": run.framework,
        "origin": "simulated",
        "status": run.status,
        "num_gpus": run.num_gpus,
        "num_nodes": run.num_nodes,
        "job_id": _job_id(run, Path(log)),
        "gbs_tokens": run.gbs_tokens,
        "steps_logged": len(run.steps) or None,
        "last_step": last.step if last else None,
        "last_loss": finite[-1] if finite else None,
        "mem_peak_allocated_bytes": run.mem_peak_allocated_bytes,
        "mem_peak_reserved_bytes": run.mem_peak_reserved_bytes,
    }
    found = _mismatches(outcome, row, f"{run.path} [{run.variant} {run.status}/{run.failure}]")
    found += _mismatches(_expected_columns(run), row, f"{run.path} [{run.variant}]")
    numbers = [step.step for step in run.steps]
    if [step["step"] for step in steps] != numbers:
        found.append(f"{run.path} [{run.variant}]: steps {numbers} read as {[step['step'] for step in steps]}")
    else:
        for truth, got in zip(run.steps, steps, strict=True):
            found += _mismatches(asdict(truth), got, f"{run.path} [{run.variant}] step {truth.step}")
    kinds = set(tables["events"].filter(pl.col("run_id") == row["run_id"])["kind"].to_list())
    silent = run.failure == "" or run.status == "truncated"
    sign = _EVIDENCE.get((run.status, run.failure), run.status)
    if (silent and kinds & _FATAL) or not (silent or sign in kinds) or "config_conflict" in kinds:
        found.append(f"{run.path} [{run.variant} {run.status}/{run.failure}]: evidence {sorted(kinds)}")
    # The step that was being written when the file stopped may be reported as cut; nothing else may be.
    if rejects.height > (run.unfinished is not None):
        found.append(f"{run.path} [{run.variant}]: rejects {rejects.select('line_no', 'reason', 'raw').to_dicts()}")
    return found


def _expected_columns(run: SimulatedRun) -> dict[str, object]:
    """What the files say; the name of the model becomes canonical in `runs`."""
    columns: dict[str, object] = dict(stated(run))
    columns.pop("model", None)
    return columns


@pytest.fixture(scope="module")
def sweep(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, list[SimulatedRun], Tables]:
    root = tmp_path_factory.mktemp("simulated")
    drawn = list(generate(seed=17, n=240, frameworks=FRAMEWORKS))
    for run in drawn:
        write_run(root, run)
    return root, drawn, _parse(root)


@pytest.mark.parametrize("framework", FRAMEWORKS)
def test_a_drawn_sweep_comes_back(framework: str, sweep: tuple[Path, list[SimulatedRun], Tables]) -> None:
    root, drawn, tables = sweep
    found = [line for run in drawn if run.framework == framework for line in differences(run, tables, root)]
    assert not found, "\n".join(found[:40])


def test_nothing_else_is_read_from_a_drawn_sweep(sweep: tuple[Path, list[SimulatedRun], Tables]) -> None:
    _, drawn, tables = sweep
    assert tables["runs"].height == len(drawn)


one_of_each = st.tuples(*map(runs, FRAMEWORKS))
"""A run of every framework, read as one batch: a batch costs more than the runs in it."""


@_PROFILE
@given(drawn=one_of_each)
def test_any_run_comes_back_under_any_noise(drawn: tuple[SimulatedRun, ...]) -> None:
    with tempfile.TemporaryDirectory() as directory:
        roots = {Path(directory, run.framework): run for run in drawn}
        for root, run in roots.items():
            write_run(root, run)
        tables = _parse(Path(directory))
        found = [line for root, run in roots.items() for line in differences(run, tables, root)]
    assert not found, "\n".join(found)


@_PROFILE
@given(drawn=one_of_each, share=st.floats(0.3, 1))
def test_a_log_cut_anywhere_yields_no_wrong_value(drawn: tuple[SimulatedRun, ...], share: float) -> None:
    with tempfile.TemporaryDirectory() as directory:
        roots = {Path(directory, run.framework): run for run in drawn}
        for root, run in roots.items():
            log = root / write_run(root, run)
            content = log.read_bytes()
            log.write_bytes(content[: int(share * len(content))])
        tables = _parse(Path(directory))
        for root, run in roots.items():
            of_run = {
                name: tables[name].filter(pl.col("source_path").str.starts_with(f"{root}/"))
                for name in ("runs", "steps")
            }
            _assert_no_value_is_wrong(run, of_run)


def _assert_no_value_is_wrong(run: SimulatedRun, tables: Tables) -> None:
    truths = {step.step: step for step in (*run.steps, *_unfinished(run))}
    for got in tables["steps"].to_dicts():
        truth = asdict(truths[got["step"]])
        present = {name: value for name, value in truth.items() if got[name] is not None}
        assert not _mismatches(present, got, f"{run.path} [{run.variant}] step {got['step']}")
        assert got["loss"] is not None or truth["loss"] is None
    for row in tables["runs"].to_dicts():
        # picotron's status file beside the log still says how the run ended.
        assert row["status"] != "completed" or row["last_step"] == run.steps_planned or run.framework == "picotron"


@pytest.mark.parametrize("logged", [1, 2, 3])
def test_the_stage_that_holds_the_loss_is_read_however_often_the_first_one_reports(logged: int, tmp_path: Path) -> None:
    layout = Layout(dp=4, tp=2, pp=2, mbs=2, zero_stage=3)
    steps = [make_exact(number) for number in range(1, logged + 1)]
    run = make_run(
        "torchtitan",
        layout=layout,
        exact=steps,
        steps_planned=9,
        status="truncated",
        failure="line_end",
        noise=Noise(tee="rank"),
    )
    log = tmp_path / write_run(tmp_path, run)
    # The first stage's line of one more step got through, the last stage's did not.
    more = render(replace(run, exact=(*run.exact, make_exact(logged + 1))))["run.log"].splitlines(keepends=True)[-1]
    log.write_bytes(log.read_bytes() + more)
    os.utime(log, (0, 0))
    steps_read = _parse(tmp_path)["steps"].sort("step")
    assert steps_read["loss"].to_list() == [*(step.loss for step in run.steps), None]


def _unfinished(run: SimulatedRun) -> list[SimulatedStep]:
    return [RENDERERS[run.framework].printed_step(run, run.unfinished)] if run.unfinished else []


@pytest.mark.parametrize("framework", FRAMEWORKS)
@stated_examples(more=30)  # each is read by every dialect, block by block: ten times the work of the others
@given(seed=st.integers(0, 2**20), shares=st.lists(st.floats(0, 1), min_size=1, max_size=3))
@example(seed=4, shares=[0.31, 0.32, 0.7])
def test_facts_do_not_depend_on_where_blocks_are_cut(framework: str, seed: int, shares: list[float]) -> None:
    (run,) = generate(seed, 1, frameworks=(framework,))
    content = render(run)[RENDERERS[framework].log_name(run)]
    cuts = sorted({int(share * len(content)) for share in shares})
    whole, cut = _extract(content, []), _extract(content, cuts)
    assert cut.dialect_of == whole.dialect_of == {0: framework}
    # A setting that every step line repeats may be noted once per block; what is said must be the same.
    assert _said(whole.facts.settings).equals(_said(cut.facts.settings)), f"settings, cut at {cuts}"
    for name in ("steps", "peaks", "events"):
        left, right = _ordered(getattr(whole.facts, name)), _ordered(getattr(cut.facts, name))
        assert left.equals(right), f"{name}, cut at {cuts}"
    assert _ordered(whole.spans).equals(_ordered(cut.spans)), f"spans, cut at {cuts}"


def _extract(content: bytes, cuts: list[int]) -> extract.Extract:
    chunks = [content[start:end] for start, end in pairwise([0, *cuts, len(content)])]
    blocks = [lines.split(0, data, first) for data, first, _ in lines.blocks(chunks)]
    partial = {0} if len(blocks) > 1 else ()
    return extract.merge([extract.extract(block, DIALECTS, partial=partial) for block in blocks], DIALECTS)


def _said(frame: pl.DataFrame) -> pl.DataFrame:
    return _ordered(frame.drop("line_no").unique())


def _ordered(frame: pl.DataFrame) -> pl.DataFrame:
    return frame.sort(frame.columns, nulls_last=True)
