"""`sweepscope calibrate`: fit the estimator's constants to measured runs, and report errors on unseen ones."""

from __future__ import annotations

import argparse
import os
from dataclasses import asdict
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sweepscope.pipeline.commands.output import note, say_result
from sweepscope.pipeline.commands.verb import Verb
from sweepscope.pipeline.errors import StoreError

if TYPE_CHECKING:
    from collections.abc import Sequence

    import polars as pl

    from sweepscope.pipeline.estimate.calibration.recipe_rows import Recipe
    from sweepscope.pipeline.estimate.physics.fabrics import Fabric
    from sweepscope.pipeline.estimate.rows.asking import ChooseProfile
    from sweepscope.pipeline.store.home import Home


def _add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--published",
        action="store_true",
        help="fit the bundled profiles to the bundled tables, not to this store's runs",
    )
    parser.add_argument("--out", metavar="DIR", help="where to write profiles (default: HOME/calibration)")


def fit_to_folder(
    recipe: Recipe, table: pl.DataFrame, folder: Path, *, choose: ChooseProfile | None = None
) -> dict[str, Any]:
    """Errors and settings of one recipe's fit, whose profile and track record are written.

    Where `choose` gives the profile that would be used without it, and that one predicts the rows better than the fit
    predicts those it has not seen, nothing is written (`kept` is false).
    """
    import numpy as np

    from sweepscope.pipeline.estimate.calibration.cross_validate import choose_weights, cross_validate, fit_recipe
    from sweepscope.pipeline.estimate.calibration.fit import batches, figures, predict
    from sweepscope.pipeline.estimate.calibration.learn import learn
    from sweepscope.pipeline.estimate.calibration.profile_file import accuracy, render_profile
    from sweepscope.pipeline.estimate.calibration.recipe_rows import gather_rows
    from sweepscope.pipeline.estimate.learned.record_file import render_record
    from sweepscope.pipeline.estimate.learned.track_record import residual_map
    from sweepscope.pipeline.estimate.physics.estimate import step_seconds
    from sweepscope.pipeline.estimate.physics.profile import constants_digest

    rows = gather_rows(recipe, table)
    constants, today = fit_recipe(rows), datetime.now(UTC).date()
    unseen = cross_validate(rows, note)
    facts = {**accuracy(unseen), **asdict(choose_weights(rows, rows.everywhere))}
    before = {}
    if choose is not None:
        unfitted = predict(batches(rows.table, choose), {}, rows.table.height, step_seconds)
        both = np.isfinite(unfitted) & np.isfinite(unseen.step_time_s)
        compared = [figures(each[both], rows.step_time_s[both])["median"] for each in (unseen.step_time_s, unfitted)]
        before = {"unfitted_median": compared[1], "kept": compared[0] < compared[1]}
        if not before["kept"]:
            return {"profile": recipe.profile, "path": None, **facts, **before, "record": {}, "patterns": []}
    path = folder / f"{recipe.profile}.toml"
    path.write_text(render_profile(recipe, constants, facts, on=today), encoding="utf-8")
    record = learn(rows, constants, unseen, on=today)
    record.about["constants"] = constants_digest(path)
    path.with_suffix(".json").write_text(render_record(record), encoding="utf-8")
    return {
        "profile": recipe.profile,
        "path": str(path),
        **facts,
        **before,
        "record": record.about,
        "patterns": residual_map(record.time),
    }


def _record_lines(about: dict[str, Any], patterns: list[dict[str, Any]]) -> list[str]:
    """Lines on a track record: coverage of intervals, errors with and without the penalty, slow patterns."""
    from sweepscope.pipeline.estimate.learned.track_record import FEWEST
    from sweepscope.schemas.thresholds import PENALISED_RATIO

    lines = []
    if "interval_coverage" in about.get("time", {}):
        facts = about["time"]
        lines.append(
            f"80 % interval held {100 * facts['interval_coverage']:.0f} % of {facts['interval_rows']} unseen runs"
        )
    if (learned := about.get("penalty")) is not None:
        verb = "penalty learned" if learned["kept"] else "no penalty kept"
        lines.append(
            f"{verb}: step time of unseen cells off by {100 * learned['median_ape']:.1f} % median with it, "
            f"{100 * learned['physics_median_ape']:.1f} % without ({learned['cells']} cells)"
        )
    slow = [row for row in patterns if row["median"] > PENALISED_RATIO and row["runs"] >= FEWEST]
    lines += [f"{row['pattern']}: {row['median']:.1f} times slower than estimated, n={row['runs']}" for row in slow]
    return lines


def _write_fabrics(found: Sequence[Fabric], target: Path) -> None:
    """Write what nccl-tests say of links and network beside the profiles; nothing where none were measured."""
    from sweepscope.pipeline.estimate.physics.fabrics import FILE, render_fabrics

    if found:
        (target / FILE).parent.mkdir(exist_ok=True)
        (target / FILE).write_text(render_fabrics(found), encoding="utf-8")
    for one in found:
        note(f"{one.words}, {100 * one.error:.0f} % off in the median")


def _own(home_argument: str | None, folder: Path | None) -> tuple[Path, list[dict[str, Any]]]:
    import polars as pl

    from sweepscope.pipeline.commands.query import run_query
    from sweepscope.pipeline.estimate.calibration.fabric import own_fabrics
    from sweepscope.pipeline.estimate.calibration.own_runs import FEWEST, own_recipes, usable_runs
    from sweepscope.pipeline.estimate.physics.profile import choose_profile
    from sweepscope.pipeline.store.home import Home

    home = Home.resolve(home_argument, for_writing=False)
    runs = run_query(home, "SELECT * FROM runs WHERE origin = 'measured'")
    fabrics = own_fabrics(run_query(home, "SELECT * FROM nccl_bench"))
    usable = usable_runs(runs.join(_stated_facts(home), on="run_id", how="left", maintain_order="left"))
    recipes = own_recipes(usable)
    if not recipes and not fabrics:
        raise StoreError(
            f"Nothing to calibrate on: a fit needs {FEWEST} completed runs of one framework on one kind of card; "
            f"the store has {usable.height} usable runs of any kind. Ingest more, or use --published."
        )
    target = folder or home.path / "calibration"
    target.mkdir(parents=True, exist_ok=True)
    _write_fabrics(fabrics, target)
    cells = usable.cast({pl.Boolean: pl.String})
    return target, [fit_to_folder(recipe, cells, target, choose=choose_profile) for recipe in recipes]


def _stated_facts(home: Home) -> pl.DataFrame:
    """What the arguments of runs state of kernels, overlap, precisions and buckets."""
    from sweepscope.pipeline.commands.query import run_query
    from sweepscope.pipeline.estimate.rows.argument_facts import FACTS_OF_ARGUMENTS, facts_of_arguments

    there = run_query(home, "SELECT 1 FROM information_schema.tables WHERE table_name = 'arguments'")
    if there.is_empty():  # an older version published the store
        return FACTS_OF_ARGUMENTS.to_frame()
    return facts_of_arguments(run_query(home, "SELECT run_id, name, value FROM arguments"))


def _published(home_argument: str | None, folder: Path | None) -> tuple[Path, list[dict[str, Any]]]:
    from sweepscope.pipeline.estimate.calibration.fabric import RUNS_OF, published_fabrics
    from sweepscope.pipeline.estimate.calibration.pooled import without_table
    from sweepscope.pipeline.estimate.calibration.published_tables import published_table
    from sweepscope.pipeline.estimate.calibration.recipes import RECIPES
    from sweepscope.pipeline.estimate.calibration.transfer_tables import transfers
    from sweepscope.pipeline.estimate.learned.transfer import render_transfers
    from sweepscope.pipeline.reference.accelerators import load_published_bandwidths
    from sweepscope.pipeline.store.home import Home

    target = folder or Home.resolve(home_argument).path / "calibration"
    target.mkdir(parents=True, exist_ok=True)
    done = []
    _write_fabrics(published_fabrics(load_published_bandwidths(), RUNS_OF), target)
    tables = target / "transfer" / "tables.json"
    tables.parent.mkdir(exist_ok=True)
    tables.write_text(render_transfers(transfers(without_table)), encoding="utf-8")
    for recipe in RECIPES:
        note(f"fitting {recipe.profile} on {recipe.dataset}")
        done.append(fit_to_folder(recipe, published_table(recipe.dataset), target))
    return target, done


def _run(args: argparse.Namespace) -> int:
    # Fits solve thousands of small systems: a linear algebra library that wakes a thread per core for each takes four
    # times as long on a busy machine. Read when numpy is first imported, which is below.
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    folder = Path(args.out) if args.out else None
    target, done = (_published if args.published else _own)(args.home, folder)
    written = sum(entry["path"] is not None for entry in done)
    lines = [f"Wrote {written} {'profile' if written == 1 else 'profiles'} to {target}"]
    for entry in done:
        error = f"{100 * entry['time_median']:.1f} % median, {100 * entry['time_mape']:.1f} % mean"
        lines.append(f"  {entry['profile']}: step time of unseen rows off by {error} ({entry['time_rows']} rows)")
        if "kept" in entry:
            verdict = "by the constants used before" if entry["kept"] else "by the bundled constants: they stay in use"
            lines.append(f"    {100 * entry['unfitted_median']:.1f} % {verdict}")
        if "outcomes" in entry:
            share = f"{100 * entry['outcomes_right']:.0f} %"
            lines.append(
                f"    fits or not, predicted for {entry['outcomes']} unseen runs: {share} right, both outcomes alike"
            )
        lines += [f"    {line}" for line in _record_lines(entry["record"], entry["patterns"])]
    say_result({"folder": str(target), "profiles": done}, "\n".join(lines), as_json=args.json)
    return 0


VERB = Verb(
    name="calibrate",
    description="Fit the estimator's constants per accelerator and framework to the store's completed runs. Each "
    "profile records what it was fitted on, when, and its error on runs that the fit had not seen; `estimate` with the "
    "same home uses it from then on.",
    add_arguments=_add_arguments,
    run=_run,
)
