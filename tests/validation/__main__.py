"""`make validate`: how accurate the estimator is on every bundled table, and what that rests on.

Prints the goals, every table beside the seed document's formulas, errors by model, nodes and strategy, what each term
is worth, what limits it, and the worst rows; `build/validation.html` holds the same with plots. Fits are made anew:
four minutes of one core with one thread of linear algebra, which `make validate` asks for (threads that wait for each
other take four times as long), and four more where `SWEEPSCOPE_PEERS` names checkouts of other estimators
(`peers/ask.py`).
"""

from __future__ import annotations

import sys
from pathlib import Path

import polars as pl

from sweepscope.pipeline.estimate.calibration.pooled import left_out
from tests.validation.elsewhere import elsewhere, fits, frontier, noise_ceilings, refused, settings, transfer
from tests.validation.html import plots, write_report
from tests.validation.nested import choices, on_measured_sets
from tests.validation.peers.beside import beside
from tests.validation.recipes import recipes
from tests.validation.report import (
    PLAYBOOK,
    ablation,
    goals,
    memory_oracle,
    playbook_groups,
    populations,
    ranked,
    repeats,
    tables,
    validate_all,
    worst,
)
from tests.validation.unseen import unseen
from tests.validation.usefulness import intervals, proposals

STYLE = {
    "tbl_hide_dataframe_shape": True,
    "tbl_hide_column_data_types": True,
    "tbl_rows": 60,
    "tbl_cols": 20,
    "fmt_str_lengths": 60,
    "tbl_width_chars": 180,
    "float_precision": 2,
    "tbl_formatting": "UTF8_FULL_CONDENSED",
}

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
    .otherwise(pl.lit("single run; nothing in its columns explains it"))
)


REPORT = Path("build") / "validation.html"
NOT_BLIND = (
    "Which terms the nanotron model has was decided with the whole playbook in view (where layers are, what "
    "exchanges beside a pipeline hold up, slow nodes, when weights are gathered), and so was where the memory's fit "
    "starts: no split guards against that. The constants of step times start from published values, and how errors "
    "weigh in their fit is chosen inside each fold; the values to choose from were written with the sweep in view. So "
    "it is with the penalty's settings."
)


def main() -> None:
    """Print the report and write it, with plots, as one HTML file."""
    parts: list[tuple[str, pl.DataFrame | str]] = []

    def show(title: str, part: pl.DataFrame | str) -> None:
        parts.append((title, part))
        sys.stdout.write(f"\n{title}\n{part}\n")
        sys.stdout.flush()

    with pl.Config(**STYLE):
        found = validate_all()
        play = found[PLAYBOOK]
        show("Goals (each figure of rows whose group the fit had not seen)", goals(found))
        show("Stand-in for held-back sweeps: tables under constants that were not fitted on them", elsewhere())
        show("Tables withheld from every fit, as they are", unseen())
        show("What noise leaves of ranking to a perfect estimate", noise_ceilings())
        show(
            "What one setting is worth there, all else alike: its next larger value, pipelines over nodes apart",
            settings(),
        )
        show("Stand-in for held-back OOM labels: does the estimate predict what happened", fits())
        show("Constants of a generation: published, and pooled over the tables that are not left out", left_out())
        show("Tables as those of unknown frameworks, and intervals from the other tables", transfer())
        show("Rows of bundled tables that no assumption mends", refused())
        show("Published runs of frontier models beside what the estimate allows them", frontier())
        show("Published recipes: the layout that ran, predicted, and where search ranks it", recipes())
        show("Every table; playbook: healthy runs only", tables(found))
        show("Beside other estimators, our profile of the framework and the table withheld", beside())
        show("Playbook: which runs are healthy, and how near they are (percent)", populations(play))
        show("Playbook on sets of runs that measurement alone selects", on_measured_sets(play))
        show("Playbook by how errors weigh in the fit", choices(play.rows))
        for frame in playbook_groups(play):
            show(f"Playbook by {frame.columns[0]} (percent)", frame)
        ranking = ranked(play)
        show(
            "Playbook, ranking by physics alone",
            f"Within {ranking.cells} cells: Spearman {ranking.spearman:.3f}, regret of the favourite "
            f"{100 * ranking.regret:.1f} %.",
        )
        show("Intervals: share of unseen rows inside", intervals(found))
        show("Playbook: test runs until a layout within 2 % of its cell's best was measured", proposals(play.rows))
        show("What each term is worth (playbook, healthy runs, not refitted)", ablation(play.rows))
        show("What limits step time: runs that should be equal (percent apart)", repeats(play.rows))
        show("What limits memory: a setting that the table does not hold", memory_oracle(play))
        show("Worst ten, playbook", worst(play, PLAYBOOK_GUESS))
        show("Worst ten, llm-foundry on A100", worst(found["ampere-composer"], FOUNDRY_GUESS))
    show("Not blind", NOT_BLIND)
    write_report(REPORT, parts, plots(found, PLAYBOOK))
    sys.stdout.write(f"\nWritten with plots to {REPORT}\n")


if __name__ == "__main__":
    main()
