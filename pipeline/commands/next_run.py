"""`sweepscope next`: the test runs that promise most throughput per GPU-hour, given what a sweep has measured."""

from __future__ import annotations

import argparse
import difflib
from collections import Counter
from typing import TYPE_CHECKING, Any

from sweepscope.pipeline.commands.counts import count
from sweepscope.pipeline.commands.output import note, say_result, table
from sweepscope.pipeline.commands.verb import Verb
from sweepscope.pipeline.errors import StoreError, UsageError
from sweepscope.schemas.thresholds import WORTHWHILE_GAIN

if TYPE_CHECKING:
    import polars as pl

    from sweepscope.pipeline.estimate.advice.cell import Cell
    from sweepscope.pipeline.estimate.advice.next_runs import NextRuns

NOTHING = "Nothing to propose: what fits was measured, or promises less than 0.1 % over the best."
_MANY_CELLS = 20
"""More are announced before they are searched: each takes about a tenth of a second."""
_ORIGINS = ("measured", "published", "simulated")


def _add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--model", help="a model of the store (default: every one)")
    parser.add_argument("--nodes", type=count, help="cells of that many nodes (default: all)")
    parser.add_argument("--framework", help="runs of that framework (default: all)")
    parser.add_argument(
        "--cluster",
        metavar="NAME",
        help="the cluster of `sweepscope cluster` that they ran on, where their own (`ingest --set cluster=NAME`, or "
        "sweepscope.toml) is none of the home's",
    )
    parser.add_argument("--origin", choices=_ORIGINS, help="whose runs (default: measured, else published)")
    parser.add_argument("--top", type=count, default=5, help="test runs to propose (default: %(default)s)")
    parser.add_argument(
        "--margin", type=float, default=0.05, help="share of memory to leave free (default: %(default)s)"
    )
    parser.add_argument(
        "--min-runs", type=count, default=3, help="leave out cells with fewer measured runs (default: %(default)s)"
    )
    parser.add_argument("--test-steps", type=count, default=20, help="steps of a test run (default: %(default)s)")
    parser.add_argument(
        "--startup-s",
        type=float,
        help="seconds before a test's first step (default: what these runs took, where their logs have it)",
    )


def _check(args: argparse.Namespace) -> None:
    for name, least in (("top", 1), ("test_steps", 1), ("nodes", 1), ("min_runs", 0)):
        value = getattr(args, name)
        if value is not None and value < least:
            raise UsageError(f"--{name.replace('_', '-')} must be at least {least}, not {value}.")
    if not 0 <= args.margin < 1:
        raise UsageError(f"--margin is a share between 0 and 1, not {args.margin}.")
    if args.startup_s is not None and args.startup_s < 0:
        raise UsageError(f"--startup-s must not be negative, not {args.startup_s}.")


def _chosen(runs: pl.DataFrame, args: argparse.Namespace) -> pl.DataFrame:
    """Runs of the asked cells. Raises with what the store has instead."""
    import polars as pl

    for name, value in (("model", args.model), ("num_nodes", args.nodes), ("framework", args.framework)):
        if value is None:
            continue
        kept = runs.filter(pl.col(name) == value)
        if kept.is_empty():
            raise UsageError(_unknown("nodes" if name == "num_nodes" else name, str(value), runs[name]))
        runs = kept
    if args.origin:
        return runs.filter(pl.col("origin") == args.origin)
    origin = next((name for name in _ORIGINS if name in set(runs["origin"])), None)
    return runs.filter(pl.col("origin") == origin)


def _unknown(label: str, value: str, column: pl.Series) -> str:
    known = [str(entry) for entry in column.drop_nulls().unique().sort()]
    near = difflib.get_close_matches(value, known, n=5, cutoff=0.4) if len(known) > 20 else known
    like = f" It has{' ones like' if len(known) > 20 else ''}: {', '.join(near)}." if near else ""
    return f"The store has no runs with {label} {value}.{like}"


def _cell_name(key: dict[str, Any]) -> str:
    tokens = f"{key['gbs_tokens']:,} tokens per step"
    return (
        f"{key['model']}, {key['num_gpus']} x {key['accelerator']}, {key['framework'] or 'unknown framework'}, {tokens}"
    )


def entries(done: list[tuple[Cell, NextRuns]]) -> list[dict[str, Any]]:
    """Proposals of all cells: the first of each cell, then the second ones, most gain per GPU-hour first.

    What the first test of a cell finds is gained once, and moves what is expected of the others. Cells without
    measurements come last. A gain below WORTHWHILE_GAIN is none.
    """
    proposals = [
        (rank, {**cell.key, "best": proposed.best, "basis": proposed.basis, **row})
        for cell, proposed in done
        for rank, row in enumerate(proposed.candidates.iter_rows(named=True))
        if row["gain"] is None or row["gain"] >= WORTHWHILE_GAIN
    ]
    proposals.sort(key=lambda one: (one[1]["gain"] is None, one[0], -(one[1]["gain_per_gpu_hour"] or 0.0)))
    return [entry for _, entry in proposals]


def _run(args: argparse.Namespace) -> int:
    from sweepscope.pipeline.commands.named_cluster import by_cluster
    from sweepscope.pipeline.commands.query import run_query
    from sweepscope.pipeline.estimate.advice.cell import cells, is_sound
    from sweepscope.pipeline.estimate.calibration.own_runs import with_own
    from sweepscope.pipeline.store.home import Home

    _check(args)
    home = Home.resolve(args.home, for_writing=False)
    runs = _chosen(run_query(home, "SELECT * FROM runs"), args)
    parts = by_cluster(runs, with_own(home.path / "calibration"), home, args.cluster)
    found = [cell for rows, choose in parts for cell in cells(rows, choose)]
    possible = [cell for cell in found if cell.request is not None]
    if not possible:
        why = f": {found[0].reason}" if found else ": no run states model, accelerators, sequence length and batch"
        raise StoreError(f"No cell of these {runs.height} runs can be estimated{why}.")
    asked = [cell for cell in possible if cell.runs.filter(is_sound()).height >= args.min_runs]
    if not asked:
        raise StoreError(
            f"None of {len(possible)} cells has {args.min_runs} measured runs. Ingest more, or lower --min-runs."
        )
    if len(asked) > _MANY_CELLS:
        note(f"Searching the layouts of {len(asked):,} cells; --model, --nodes and --framework narrow it ...")
    done = _searched(asked, args)
    best = entries(done)[: args.top]
    counts = [
        ("cells", f"{len(asked):,}"),
        ("cells with fewer runs", f"{len(possible) - len(asked):,}"),
        ("cells not estimated", f"{len(found) - len(possible):,}"),
        *_conditions([proposed for _, proposed in done], args.test_steps),
    ]
    value = {
        "next": best,
        "cells": [_cell_value(cell, proposed) for cell, proposed in done],
        "not_estimated": [{**cell.key, "reason": cell.reason} for cell in found if cell.request is None],
    }
    say_result(value, "\n".join([*(_lines(best) or [NOTHING]), "", table(counts)]), as_json=args.json)
    return 0


def _searched(asked: list[Cell], args: argparse.Namespace) -> list[tuple[Cell, NextRuns]]:
    """Each cell with what to run next in it."""
    from sweepscope.pipeline.estimate.advice.next_runs import next_runs

    how = {"top": args.top, "margin": args.margin, "test_steps": args.test_steps, "startup_s": args.startup_s}
    return [(cell, next_runs(cell.request, cell.runs, **how)) for cell in asked if cell.request is not None]


def _lines(best: list[dict[str, Any]]) -> list[str]:
    """Three lines per proposal: layout with gain and price, its cell, the reason."""
    lines = []
    for rank, entry in enumerate(best, start=1):
        gain = "" if entry["gain"] is None else f"  {entry['gain']:+.1%} for {entry['test_gpu_hours']:.2g} GPU-hours"
        lines += [f"{rank} {entry['layout']}{gain}", f"  {_cell_name(entry)}", f"  {entry['why']}"]
    return lines


def _conditions(proposed: list[NextRuns], test_steps: int) -> list[tuple[str, str]]:
    """What a test is taken for, and what was left out over all cells, as lines of (name, text)."""
    excluded: Counter[str] = Counter()
    for one in proposed:
        excluded.update(one.excluded)
    has_startup = any(one.startup_s is not None for one in proposed)
    return [
        ("a test", f"{test_steps} steps" + ("" if has_startup else ", start-up not counted: no run has it")),
        *((f"left out: {reason}", f"{count:,}") for reason, count in excluded.items()),
    ]


def _cell_value(cell: Cell, proposed: NextRuns) -> dict[str, Any]:
    """A cell as `--json` prints it."""
    return {
        **cell.key,
        "best": proposed.best,
        "measured": proposed.measured,
        "excluded": proposed.excluded,
        "basis": proposed.basis,
        "startup_s": proposed.startup_s,
    }


VERB = Verb(
    name="next",
    description="For every cell of the store (model x accelerators x sequence x batch) propose unmeasured layouts, "
    "ranked by expected gain over the measured best per GPU-hour of a test run. Leaves out what ran out of "
    "memory and what needs at least as much; each proposal has its reason.",
    add_arguments=_add_arguments,
    run=_run,
)
