"""`make validate`: how accurate the estimator is on every bundled table, and what that rests on.

Prints the goals, every table beside the seed document's formulas, errors by model, nodes and strategy, what each term
is worth, and the worst rows. Fits are made anew; takes about two minutes of one core.
"""

from __future__ import annotations

import sys

import polars as pl

from tests.validation.report import PLAYBOOK, ablation, goals, playbook_groups, ranked, tables, validate_all, worst

STYLE = {
    "tbl_hide_dataframe_shape": True, "tbl_hide_column_data_types": True, "tbl_rows": 60, "tbl_cols": 20,
    "fmt_str_lengths": 60, "tbl_width_chars": 180, "float_precision": 2, "tbl_formatting": "UTF8_FULL_CONDENSED",
}  # fmt: skip

PLAYBOOK_GUESS = (
    pl.when(pl.col("tp").cast(pl.Int64) >= 16)
    .then(pl.lit("TP over nodes: the fabric's share varies from run to run"))
    .when(pl.col("num_gpus").cast(pl.Int64) >= 128)
    .then(pl.lit("16 nodes and more: measured NCCL bandwidth varies five-fold between runs there"))
    .otherwise(pl.lit("single run, no repeat: step time itself varies by 10 % and more"))
)
FOUNDRY_GUESS = (
    pl.when(pl.col("precision").str.contains("fp8"))
    .then(pl.lit("FP8: which products run in it is not stated"))
    .when(pl.col("model").is_in(["MPT-30b", "MPT-70b"]) & (pl.col("micro_batch_size").cast(pl.Int64) <= 2))
    .then(pl.lit("at the memory limit: the allocator's retries cost time"))
    .when(pl.col("grad_accum").cast(pl.Int64) == 1)
    .then(pl.lit("one micro-batch per step: host time counts"))
    .otherwise(pl.lit("single run; nothing in its columns tells"))
)


def show(title: str, frame: pl.DataFrame) -> None:
    """One table with its title."""
    sys.stdout.write(f"\n{title}\n{frame}\n")
    sys.stdout.flush()


def main() -> None:
    """Print the report."""
    with pl.Config(**STYLE):
        found = validate_all()
        play = found[PLAYBOOK]
        show("Goals (each figure of rows whose group the fit had not seen)", goals(found))
        show("Every table; playbook: healthy runs only", tables(found))
        for frame in playbook_groups(play):
            show(f"Playbook by {frame.columns[0]} (percent)", frame)
        ranking = ranked(play)
        sys.stdout.write(
            f"\nPlaybook, ranking within {ranking.cells} cells by physics alone: Spearman {ranking.spearman:.3f}, "
            f"regret of the favourite {100 * ranking.regret:.1f} %\n"
        )
        show("What each term is worth (playbook, healthy runs, not refitted)", ablation(play.rows))
        show("Worst ten, playbook", worst(play, PLAYBOOK_GUESS))
        show("Worst ten, llm-foundry on A100", worst(found["ampere-composer"], FOUNDRY_GUESS))
    sys.stdout.write(
        "\nNot blind: the starts of the nanotron fit were chosen with the whole playbook in view, and its pull towards "
        "them is strong.\nThe splits guard the fitted constants only.\n"
    )


if __name__ == "__main__":
    main()
