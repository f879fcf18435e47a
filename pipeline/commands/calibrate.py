"""`sweepscope calibrate`: fit the estimator's constants to measured runs, and say how far off unseen ones are."""

from __future__ import annotations

import argparse
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pipeline.commands.output import note, say_result
from pipeline.commands.protocol import Verb
from pipeline.errors import StoreError

if TYPE_CHECKING:
    import polars as pl

    from pipeline.estimate.calibrate import Recipe


def _add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--published",
        action="store_true",
        help="fit the bundled profiles to the bundled tables, not to this store's runs",
    )
    parser.add_argument("--out", metavar="DIR", help="where to write profiles (default: HOME/calibration)")


def _fit(recipe: Recipe, table: pl.DataFrame, folder: Path) -> dict[str, Any]:
    """Fit one recipe, write its profile, and return what it says of itself."""
    from pipeline.estimate.calibrate import cross_validate, fit_recipe, gather_rows
    from pipeline.estimate.profile_file import accuracy, render_profile

    rows = gather_rows(recipe, table)
    constants = fit_recipe(rows)
    told = accuracy(cross_validate(rows))
    path = folder / f"{recipe.profile}.toml"
    path.write_text(render_profile(recipe, constants, told, on=datetime.now(UTC).date()), encoding="utf-8")
    return {"profile": recipe.profile, "path": str(path), **told}


def _own(home_argument: str | None, folder: Path | None) -> tuple[Path, list[dict[str, Any]]]:
    import polars as pl

    from pipeline.commands.query import run_query
    from pipeline.estimate.own_runs import FEWEST, own_recipes, usable_runs
    from pipeline.store.home import Home

    home = Home.resolve(home_argument, for_writing=False)
    runs = run_query(home, "SELECT * FROM runs WHERE origin = 'measured'")
    usable = usable_runs(runs)
    recipes = own_recipes(usable)
    if not recipes:
        raise StoreError(
            f"Nothing to calibrate on: a fit needs {FEWEST} completed runs of one framework on one kind of card; "
            f"the store has {usable.height} usable runs of any kind. Ingest more, or use --published."
        )
    target = folder or home.path / "calibration"
    target.mkdir(parents=True, exist_ok=True)
    return target, [_fit(recipe, usable.cast({pl.Boolean: pl.String}), target) for recipe in recipes]


def _published(home_argument: str | None, folder: Path | None) -> tuple[Path, list[dict[str, Any]]]:
    from pipeline.estimate.published_tables import published_table
    from pipeline.estimate.recipes import RECIPES
    from pipeline.store.home import Home

    target = folder or Home.resolve(home_argument).path / "calibration"
    target.mkdir(parents=True, exist_ok=True)
    done = []
    for recipe in RECIPES:
        note(f"fitting {recipe.profile} on {recipe.dataset}")
        done.append(_fit(recipe, published_table(recipe.dataset), target))
    return target, done


def _run(args: argparse.Namespace) -> int:
    folder = Path(args.out) if args.out else None
    target, done = (_published if args.published else _own)(args.home, folder)
    lines = [f"Wrote {len(done)} profiles to {target}"]
    for entry in done:
        error = f"{100 * entry['time_median']:.1f} % median, {100 * entry['time_mape']:.1f} % mean"
        lines.append(f"  {entry['profile']}: step time of unseen rows off by {error} ({entry['time_rows']} rows)")
    say_result({"folder": str(target), "profiles": done}, "\n".join(lines), as_json=args.json)
    return 0


VERB = Verb(
    name="calibrate",
    help="fit the estimator to this store's measured runs",
    description="Fit the estimator's constants per accelerator and framework to the store's completed runs. Each "
    "profile records what it was fitted on, when, and its error on runs that the fit had not seen; `estimate` with the "
    "same home uses it from then on.",
    add_arguments=_add_arguments,
    run=_run,
)
