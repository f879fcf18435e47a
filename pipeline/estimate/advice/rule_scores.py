"""How each document's rules did on measured layouts.

A cell of a sweep tests a rule when the rule applies and both layouts that follow it and layouts that do not were
measured. The rule holds where a layout that follows it is within RULE_NEAR of the fastest. A rule that many layouts
follow holds easily, so `selects` gives their share: the hit rate of a random rule.
"""

from __future__ import annotations

from typing import Final

import polars as pl

from sweepscope.pipeline.estimate.advice.applicable_rules import question_columns
from sweepscope.pipeline.reference.rules import Book, Rule, load_rules
from sweepscope.schemas.thresholds import RULE_LAYOUTS, RULE_NEAR, RULE_NEARISH

FOR, AGAINST, UNTESTED = "for", "against", "untested"
CELL: Final = ("origin", "model", "num_nodes", "num_gpus", "seq_len", "gbs_tokens", "accelerator")

_EVIDENCE: dict[str, pl.DataType] = {
    **dict.fromkeys(("rule", "origin", "model", "accelerator"), pl.String()),
    **dict.fromkeys(("num_nodes", "num_gpus", "seq_len", "gbs_tokens"), pl.Int64()),
    "verdict": pl.String(),
    "layouts": pl.Int64(),
    "advised": pl.Int64(),
    "is_winner": pl.Boolean(),
    **dict.fromkeys(("regret", "typical_regret", "other_regret"), pl.Float64()),
    **dict.fromkeys(("winner_run_id", "winner_layout", "advised_run_id", "advised_layout"), pl.String()),
}
EVIDENCE: Final = pl.Schema(_EVIDENCE)
"""One row per rule and cell in which it applies. `regret`: what the fastest layout that follows the rule loses to the
fastest of all, a share of throughput; `typical_regret` the median of all that follow it, `other_regret` of the rest."""


def weigh(layouts: pl.DataFrame, book: Book | None = None, *, fewest: int = RULE_LAYOUTS) -> pl.DataFrame:
    """The EVIDENCE for and against every rule. `layouts`: rows of `ranked_layouts`, with num_experts where known."""
    book = book or load_rules()
    table = question_columns(layouts.filter(pl.col("tokens_per_s_per_gpu") > 0))
    parts = [_weigh_one(rule, table, fewest) for rule in book.rules] if table.height else []
    return pl.concat([EVIDENCE.to_frame(), *parts], how="vertical")


def _weigh_one(rule: Rule, table: pl.DataFrame, fewest: int) -> pl.DataFrame:
    follows, speed = pl.col("follows"), pl.col("tokens_per_s_per_gpu")
    chosen = table.filter(pl.sql_expr(rule.when).fill_null(False) & pl.sql_expr(rule.among).fill_null(False))
    chosen = chosen.with_columns(follows=pl.sql_expr(rule.advice).fill_null(False)).sort(
        "tokens_per_s_per_gpu", "run_id", descending=[True, False]
    )
    lost = 1.0 - speed / speed.first()
    cells = chosen.group_by(*CELL, maintain_order=True).agg(
        pl.len().cast(pl.Int64).alias("layouts"),
        follows.sum().cast(pl.Int64).alias("advised"),
        follows.first().alias("is_winner"),
        lost.filter(follows).min().alias("regret"),
        lost.filter(follows).median().alias("typical_regret"),
        lost.filter(~follows).median().alias("other_regret"),
        pl.col("run_id").first().alias("winner_run_id"),
        pl.col("layout").first().alias("winner_layout"),
        pl.col("run_id").filter(follows).first().alias("advised_run_id"),
        pl.col("layout").filter(follows).first().alias("advised_layout"),
    )
    tested = (pl.col("layouts") >= fewest) & (pl.col("advised") > 0) & (pl.col("advised") < pl.col("layouts"))
    verdict = pl.when(~tested).then(pl.lit(UNTESTED)).when(pl.col("regret") <= RULE_NEAR).then(pl.lit(FOR))
    return cells.with_columns(rule=pl.lit(rule.id), verdict=verdict.otherwise(pl.lit(AGAINST))).select(
        pl.col(name).cast(kind) for name, kind in EVIDENCE.items()
    )


_SCORES: dict[str, pl.DataType] = {
    **dict.fromkeys(("rule", "set", "document", "section", "step", "says"), pl.String()),
    **dict.fromkeys(("cells", "tested", "held"), pl.Int64()),
    **dict.fromkeys(("hit_rate", "hit_rate_5", "winner_rate", "selects"), pl.Float64()),
    **dict.fromkeys(("regret", "typical_regret", "other_regret"), pl.Float64()),
    **dict.fromkeys(("runs_for", "runs_against"), pl.List(pl.String())),
}
SCORES: Final = pl.Schema(_SCORES)
"""One row per rule. Of `tested` cells it `held` in some: the best layout that follows it is within 2 % of the fastest
(`hit_rate`; `hit_rate_5`: within 5 %; `winner_rate`: it is the fastest). `selects`: mean share of layouts that follow.
Regrets are means over tested cells. `runs_for` are runs of its advice that held, `runs_against` winners against it."""


def score(evidence: pl.DataFrame, book: Book | None = None) -> pl.DataFrame:
    """SCORES of every rule, in the book's order; a rule that nothing tested has NULL figures."""
    book = book or load_rules()
    tested = pl.col("verdict") != UNTESTED
    held = pl.col("verdict") == FOR

    def over(value: pl.Expr) -> pl.Expr:
        return value.filter(tested).mean()

    counted = evidence.group_by("rule").agg(
        pl.len().cast(pl.Int64).alias("cells"),
        tested.sum().cast(pl.Int64).alias("tested"),
        held.sum().cast(pl.Int64).alias("held"),
        over(held).alias("hit_rate"),
        over(pl.col("regret") <= RULE_NEARISH).alias("hit_rate_5"),
        over(pl.col("is_winner")).alias("winner_rate"),
        over(pl.col("advised") / pl.col("layouts")).alias("selects"),
        *(over(pl.col(name)).alias(name) for name in ("regret", "typical_regret", "other_regret")),
        pl.col("advised_run_id").filter(held).alias("runs_for"),
        pl.col("winner_run_id").filter(pl.col("verdict") == AGAINST).alias("runs_against"),
    )
    named = pl.DataFrame(
        [(rule.id, rule.set, book.title(rule), rule.section, rule.step, rule.says) for rule in book.rules],
        schema=dict.fromkeys(("rule", "set", "document", "section", "step", "says"), pl.String),
        orient="row",
    )
    whole = named.join(counted, on="rule", how="left", maintain_order="left")
    return whole.with_columns(
        *(pl.col(name).fill_null(0) for name in ("cells", "tested", "held")),
        *(pl.col(name).fill_null([]) for name in ("runs_for", "runs_against")),
    ).select(pl.col(name).cast(kind) for name, kind in SCORES.items())


def score_sets(evidence: pl.DataFrame, book: Book | None = None) -> pl.DataFrame:
    """One row per rule set: in how many of the cells of `evidence` that test any of its rules all hold, and regrets."""
    book = book or load_rules()
    sets = {rule.id: rule.set for rule in book.rules}
    tested = evidence.filter(pl.col("verdict") != UNTESTED).with_columns(
        set=pl.col("rule").replace_strict(sets, return_dtype=pl.String)
    )
    cells = tested.group_by("set", *CELL).agg(
        (pl.col("verdict") == FOR).all().alias("held"), pl.col("regret").max(), pl.col("typical_regret").max()
    )
    counted = cells.group_by("set").agg(
        pl.len().cast(pl.Int64).alias("tested"),
        pl.col("held").sum().cast(pl.Int64),
        pl.col("held").mean().alias("hit_rate"),
        pl.col("regret").mean(),
        pl.col("typical_regret").mean(),
    )
    order = pl.DataFrame({"set": list(dict.fromkeys(sets.values()))})
    return order.join(counted, on="set", how="left", maintain_order="left")
