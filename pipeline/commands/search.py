"""`sweepscope search`: the best layouts of a model on a cluster, out of all of them."""

from __future__ import annotations

import argparse
from dataclasses import asdict, replace
from typing import TYPE_CHECKING

from sweepscope.pipeline.commands.counts import count
from sweepscope.pipeline.commands.output import say_result, table
from sweepscope.pipeline.commands.question import add_question_arguments, make_request
from sweepscope.pipeline.commands.search_sizes import (
    add_size_arguments,
    answer_sizes,
    check_size_arguments,
    shape_lines,
    shape_value,
)
from sweepscope.pipeline.commands.verb import Verb
from sweepscope.pipeline.errors import QueryError, StoreError, UsageError

if TYPE_CHECKING:
    import polars as pl

    from sweepscope.pipeline.estimate.search.enumerate import Request
    from sweepscope.pipeline.estimate.search.search import Found

POOL = 400
"""Layouts among which a rule's best follower is looked for."""

RANKED_BY = {
    "physics": "what physics allows",
    "expected": "what runs are expected to reach: physics times the learned penalty",
}


def _add_arguments(parser: argparse.ArgumentParser) -> None:
    add_question_arguments(parser)
    parser.add_argument("--top", type=count, default=10, help="layouts to show (default: %(default)s)")
    parser.add_argument(
        "--margin", type=float, default=0.05, help="share of memory to leave free (default: %(default)s)"
    )
    parser.add_argument(
        "--rank",
        choices=("auto", "physics", "expected"),
        default="auto",
        help="by what physics allows or by what the framework's runs reached beside it, learned from measured runs "
        "(auto: expected where --framework has such a record)",
    )
    add_size_arguments(parser)
    parser.add_argument("--out", metavar="FILE", help="write the layouts with their breakdown, or the sizes, to a CSV")


def rule_scores(home_argument: str | None) -> pl.DataFrame | None:
    """How the documents' rules did on the store, or None without a store."""
    from sweepscope.pipeline.commands.rules import layouts_of_store
    from sweepscope.pipeline.estimate.advice.rule_scores import score, weigh
    from sweepscope.pipeline.store.home import Home

    try:
        layouts = layouts_of_store(Home.resolve(home_argument, for_writing=False))
    except (StoreError, QueryError):  # no store yet, or one published before the view existed
        return None
    return score(weigh(layouts))


def why_none(request: Request, found: Found, *, margin: float) -> str:
    """One line for a search without an answer."""
    card = request.asked.cluster
    what = f"No layout on {request.num_gpus:,} accelerators with {request.gbs:,} sequences per step"
    if found.launchable:
        need, room = found.leanest_bytes + request.asked.profile.outside_bytes, card.memory_bytes * (1 - margin)
        return (
            f"{what} fits: the leanest needs {need / 1e9:.1f} GB, {card.accelerator} has "
            f"{card.memory_bytes / 1e9:.1f} GB, {room / 1e9:.1f} with {100 * margin:.3g} % to spare. "
            "Take more nodes, or a smaller --margin."
        )
    reason = next(iter(found.pruned), "nothing to try")
    return f"{what} can be launched; most often: {reason}."


def _lines(frame: pl.DataFrame) -> str:
    """Layouts as a table of text; columns that tell nothing of any of them are left out."""
    import polars as pl

    has_penalty = frame["est_penalty"].is_not_null().any()
    has_other = not frame["pipeline_schedule"].is_in(["1f1b", "interleaved"]).all()
    has_interval = frame["est_step_time_lo_s"].is_not_null().any()
    ends = [pl.col(f"est_step_time_{end}_s").round(2).cast(pl.String) for end in ("lo", "hi")]
    shown = frame.select(
        *("dp", "tp", "pp", "cp", "ep", "vpp", "gas", "mbs"),
        pl.col("zero_stage").alias("zero"),
        *([pl.col("dp_replicate").alias("copies")] if (frame["dp_replicate"] > 1).any() else []),
        *([pl.col("pipeline_schedule").alias("schedule")] if has_other else []),
        "recompute",
        (100 * pl.col("est_mfu")).round(1).alias("MFU %"),
        pl.col("est_tokens_per_s_per_gpu").round(0).cast(pl.Int64).alias("tok/s/GPU"),
        pl.col("est_step_time_s").round(3).alias("step s"),
        *(
            [
                pl.col("est_penalty").round(2).alias("penalty"),
                pl.col("expected_step_time_s").round(3).alias("expected s"),
            ]
            if has_penalty
            else []
        ),
        *([pl.concat_str(ends, separator="-").alias("80 % s")] if has_interval else []),
        (pl.col("est_mem_reserved_bytes") / 2**30).round(1).alias("GiB"),
    )
    with pl.Config(
        tbl_rows=100,
        tbl_cols=-1,
        tbl_width_chars=160,
        tbl_hide_dataframe_shape=True,
        tbl_hide_column_data_types=True,
        tbl_formatting="UTF8_FULL_CONDENSED",
    ):
        return str(shown)


def _run(args: argparse.Namespace) -> int:
    from sweepscope.pipeline.estimate.advice.recipe import recipe_lines, search_summary, walk
    from sweepscope.pipeline.estimate.search.near_shapes import near_shapes
    from sweepscope.pipeline.estimate.search.search import search

    check_size_arguments(args)
    request = make_request(args)
    if args.nodes is None:
        return answer_sizes(request, args)
    pool = search(request, top=max(args.top, POOL), margin=args.margin, by=args.rank)
    found = replace(pool, layouts=pool.layouts.head(args.top))
    if args.rank == "expected" and found.fitting and found.ranked_by != "expected":
        raise UsageError(
            f"Nothing was learned of {args.framework or 'an unnamed framework'} on {args.accelerator} at this size, so "
            "layouts cannot be ranked by what runs reached. Use --rank physics, or calibrate on runs of your own."
        )
    if not found.fitting:
        raise UsageError(why_none(request, found, margin=args.margin))
    if args.out:
        found.layouts.write_csv(args.out)
    summary = search_summary(request, found)
    stops = walk(request, pool.layouts, rule_scores(args.home), by=found.ranked_by)
    counts = table(_counts(request, found, margin=args.margin))
    shapes = near_shapes(request, margin=args.margin, by=args.rank) if args.shapes else None
    parts = [_lines(found.layouts), "\n".join(summary), "\n".join(recipe_lines(stops))]
    text = "\n\n".join([*parts, *([shape_lines(shapes)] if shapes is not None else []), counts])
    value = {
        "layouts": found.layouts.to_dicts(),
        "front": found.front.to_dicts(),
        "examined": found.examined,
        "launchable": found.launchable,
        "fitting": found.fitting,
        "pruned": found.pruned,
        "profile": request.asked.profile.name,
        "ranked_by": found.ranked_by,
        "story": summary,
        "recipe": [asdict(stop) for stop in stops],
        **({"shapes": shape_value(shapes)} if shapes is not None else {}),
    }
    say_result(value, text, as_json=args.json)
    return 0


def _counts(request: Request, found: Found, *, margin: float) -> list[tuple[str, str]]:
    """How many layouts were left at each stage, by which constants and what rank, as lines of (name, text)."""
    profile = request.asked.profile
    return [
        ("examined", f"{found.examined:,}"),
        ("can be launched", f"{found.launchable:,}"),
        (f"fit with {100 * margin:.0f} % to spare", f"{found.fitting:,}"),
        ("constants", f"{profile.name} ({profile.about.get('kind', 'unknown')})"),
        ("ranked by", RANKED_BY[found.ranked_by]),
        *((f"pruned: {reason}", f"{count:,}") for reason, count in found.pruned.items()),
    ]


VERB = Verb(
    name="search",
    description="Enumerate every layout of a model on a cluster, estimate memory and step time of each, and show the "
    "fastest that fit, why the others do not, and the three-step recipe (fit, batch, throughput) in figures. With "
    "--gpus, or --tokens and --days: how many accelerators are needed.",
    add_arguments=_add_arguments,
    run=_run,
)
