"""`sweepscope rules`: what documents advise on layouts, and how each rule did on the store's own runs."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from sweepscope.pipeline.commands.output import say_result
from sweepscope.pipeline.commands.verb import Verb
from sweepscope.pipeline.errors import UsageError

if TYPE_CHECKING:
    import polars as pl

    from sweepscope.pipeline.store.home import Home

RANKED = (
    "SELECT ranked_layouts.*, runs.num_experts FROM ranked_layouts JOIN runs USING (run_id) "
    "WHERE ranked_layouts.origin <> 'simulated'"
)
"""Layouts that rules are scored on: simulated ones prove nothing about hardware."""


def _add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--origin", choices=("measured", "published", "simulated"), help="whose runs (default: all real)"
    )
    parser.add_argument("--document", help="rules of one document: chapter, playbook, notes, heuristics, slides or own")
    parser.add_argument("--evidence", action="store_true", help="list every tested cell with its runs")


def layouts_of_store(home: Home, origin: str | None = None) -> pl.DataFrame:
    """Rows of `ranked_layouts` with num_experts."""
    from sweepscope.pipeline.commands.query import run_query

    sql = RANKED if origin is None else RANKED.replace("<> 'simulated'", f"= '{origin}'")
    return run_query(home, sql)


def _text(scores: pl.DataFrame, sets: pl.DataFrame) -> str:
    import polars as pl

    def percent(name: str, alias: str) -> pl.Expr:
        return (100 * pl.col(name)).round(0).cast(pl.Int64).alias(alias)

    rules = scores.filter(pl.col("tested") > 0).select(
        "rule",
        "tested",
        "held",
        percent("selects", "selects %"),
        percent("winner_rate", "wins %"),
        percent("regret", "best loses %"),
        percent("typical_regret", "typical loses %"),
        percent("other_regret", "others lose %"),
        "says",
    )
    untested = scores.filter(pl.col("tested") == 0)["rule"].to_list()
    by_set = sets.filter(pl.col("tested") > 0).select("set", "tested", "held", percent("regret", "best loses %"))
    with pl.Config(
        tbl_rows=200,
        tbl_cols=-1,
        tbl_width_chars=200,
        tbl_hide_dataframe_shape=True,
        fmt_str_lengths=100,
        tbl_hide_column_data_types=True,
        tbl_formatting="UTF8_FULL_CONDENSED",
    ):
        parts = [str(rules), "All rules of a set at once:", str(by_set)]
    if untested:
        parts.append(f"Not tested by these runs: {', '.join(untested)}")
    parts.append(
        "A cell tests a rule when layouts that follow it and layouts that do not were measured there. It held where\n"
        "one that follows it is within 2 % of the fastest; selects %: layouts that follow, what chance would hit."
    )
    return "\n\n".join(parts)


def _run(args: argparse.Namespace) -> int:
    import polars as pl

    from sweepscope.pipeline.estimate.advice.rule_scores import UNTESTED, score, score_sets, weigh
    from sweepscope.pipeline.reference.rules import Book, rules_of
    from sweepscope.pipeline.store.home import Home

    home = Home.resolve(args.home, for_writing=False)
    book = rules_of(home.path)
    if args.document:
        if args.document not in book.documents:
            raise UsageError(f"Unknown document: {args.document}. Known: {', '.join(book.documents)}.")
        kept = tuple(rule for rule in book.rules if rule.document == args.document)
        book = Book(book.documents, book.shorts, book.steps, kept)
    evidence = weigh(layouts_of_store(home, args.origin), book)
    scores, sets = score(evidence, book), score_sets(evidence, book)
    tested = evidence.filter(pl.col("verdict") != UNTESTED)
    text = _text(scores, sets)
    if args.evidence:
        lines = [
            f"{row['rule']}: {row['verdict']}, {row['model']} on {row['num_gpus']} x {row['accelerator']}: winner "
            f"{row['winner_layout']} ({row['winner_run_id']}), advised {row['advised_layout']} "
            f"({row['advised_run_id']}) loses {row['regret']:.1%}"
            for row in tested.iter_rows(named=True)
        ]
        text = "\n\n".join([text, "\n".join(lines)])
    value = {
        "rules": scores.to_dicts(),
        "sets": sets.to_dicts(),
        "documents": dict(book.documents),
        "evidence": tested.to_dicts(),
    }
    say_result(value, text, as_json=args.json)
    return 0


VERB = Verb(
    name="rules",
    description="Hold the rules of five documents (by model size, scale, memory, order of steps; they disagree) "
    "against every cell of the store: how often a layout that follows a rule is within 2 % of the fastest, what "
    "following it costs, and which runs speak for and against it. Rules of your own stand in rules.toml in the home.",
    add_arguments=_add_arguments,
    run=_run,
)
