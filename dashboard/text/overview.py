"""The first screen: its answer, its four figures and its lists."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import polars as pl

from sweepscope.dashboard.format import numbers
from sweepscope.dashboard.format.devices import CPU, are_ranks, devices
from sweepscope.dashboard.format.metrics import performance
from sweepscope.dashboard.format.numbers import count, number, part_of, percent, seconds
from sweepscope.dashboard.format.printed_mfu import beside_computed
from sweepscope.dashboard.format.symbols import CELL_STATE
from sweepscope.dashboard.queries.query import Row
from sweepscope.dashboard.selection.slices import Other, Slice
from sweepscope.dashboard.text import failures
from sweepscope.dashboard.text.cell import cell_name, lead
from sweepscope.dashboard.view_models.cells import best_first
from sweepscope.dashboard.view_models.failures import overall_rate

# When a sentence is shown; our choices, which decide the order of sentences and never a figure.
_MOST = 0.75  # share of winners from which one strategy "wins n of m cells"
_CLEAR = 0.6  # share of winners, in each half, from which small and large scale differ
_HIGH_TP = 4  # half a node of 8: from there on tensor parallelism is more than a way to fit two cards
_MODELS_NAMED = 2  # of a grid in a list; of more only their number
_CLOSE = 0.01  # lead in tokens/s/GPU


@dataclass(frozen=True)
class Item:
    """A line of a list: what, how much, and where it leads: a cell (model, scale), a finding or problem, or `url`."""

    text: str
    value: str
    cell: tuple[str, str] | None = None
    key: str | None = None
    url: str | None = None


def answer(cells: pl.DataFrame) -> str:
    """What the winners of the grid have in common, and how close the races are."""
    winners = cells.filter(pl.col("run_id").is_not_null())
    if winners.is_empty():
        tried = int(cells["runs_tried"].sum())
        return f"**No run has completed in this grid yet**: {count(tried, 'try', 'tries')} so far."
    if winners.height == 1:
        only = winners.row(0, named=True)
        if only["runner_up_run_id"] is None:
            return f"**One result so far:** {cell_name(only)} reaches {performance(only)} with {only['layout']}."
        layouts = f"**{count(only['layouts_completed'], 'layout')} of {cell_name(only)} completed.**"
        return f"{layouts} The best is {only['layout']}: {performance(only)}, {lead(only)}."
    return " ".join(part for part in (_common_strategy(winners), _pattern(winners), _close_races(winners)) if part)


def own_answer(own: pl.DataFrame) -> str:
    """How many own runs completed and the fastest of them, where one grid does not hold them all.

    `own` are rows of `queries.overview.completed`.
    """
    runs = count(int(own["runs_completed"].sum()), "completed run")
    on_cpu = are_ranks(own)
    most = (own if on_cpu else own.filter(pl.col("accelerator").ne_missing(CPU)))["num_gpus"].max()
    size = f" on up to {devices(most, CPU if on_cpu else None)}" if isinstance(most, int) else ""
    start = f"**{runs}** {_of_models(own)}{size}."
    best = best_first(own.filter(pl.col("mfu").is_not_null() | pl.col("tokens_per_s_per_gpu").is_not_null()))
    if best.is_empty():
        timed = own.drop_nulls("step_time_s").sort("step_time_s")
        if timed.is_empty():
            return f"{start} None has a throughput that may be compared."
        row = timed.row(0, named=True)
        return f"{start} The shortest step is {seconds(row['step_time_s'])}: {row['layout'] or 'an unknown layout'}."
    row = best.row(0, named=True)
    name = f"{row['model'] or 'an unknown model'} on {_gpus(row)}"
    # Of unlike models, the one with more tokens is no better: it may be smaller.
    best_one = "The best" if row["mfu"] is not None else "The highest throughput"
    return f"{start} {best_one} is {performance(row)}: {name}, {row['layout'] or 'an unknown layout'}."


def _of_models(own: pl.DataFrame) -> str:
    """Of how many models the completed runs are, and how many of them name none."""
    models = own["model"].drop_nulls().n_unique()
    unnamed = int(own.filter(pl.col("model").is_null())["runs_completed"].sum())
    if not models:
        return "of an unknown model"
    named_by_none = f" ({number(unnamed)} name none)" if unnamed else ""
    return f"of {count(models, 'model')}{named_by_none}"


_LACKS = {
    "model": "the model",
    "num_nodes": "the number of nodes",
    "num_gpus": "the number of GPUs",
    "seq_len": "the sequence length",
    "gbs_tokens": "the global batch",
    "tokens_per_s_per_gpu": "throughput",
}


def lacking(row: Row) -> str:
    """What completed runs do not log and would have to, to be ranked; "" where nothing is missing.

    `row` is one of `queries.overview.lacking`. Throughput follows from the number of GPUs, the batch and the step time.
    """
    follows = row["num_gpus"] or row["gbs_tokens"]
    missing = {name: row[name] for name in _LACKS if row[name] and not (name == "tokens_per_s_per_gpu" and follows)}
    if not missing:
        return ""
    every = row["runs_completed"]
    parts = [
        words if missing[name] == every else f"{words} ({number(missing[name])} of {number(every)})"
        for name, words in _LACKS.items()
        if name in missing
    ]
    listed = parts[0] if len(parts) == 1 else f"{', '.join(parts[:-1])} and {parts[-1]}"
    they_lack = "it lacks" if every == 1 else "they lack"
    return f"To be ranked {they_lack} **{listed}**: state it once for the whole sweep on Data health."


BESIDE = {"published": "Published results, to compare with", "simulated": "Simulated results, to compare with"}


def none_completed(totals: Row, endings: Sequence[Row]) -> str:
    """That no own run completed, and how they ended: rows of `queries.failures.totals` and `endings`."""
    if not totals["runs_judged"]:
        return f"**None of your {count(totals['runs_tried'], 'run')} has an outcome yet.**"
    return f"**None of your runs completed.** {failures.answer(totals, endings, [])}"


def ended(row: Row) -> str:
    """How many own runs there are and failed; `row` is one of `queries.failures.totals`."""
    failed = f", {number(row['runs_failed'])} of them failed" if row["runs_failed"] else ""
    running = f", {number(row['runs_running'])} running" if row["runs_running"] else ""
    return f"{count(row['runs_tried'], 'run')} tried{failed}{running}"


def own_qualifier(own: pl.DataFrame, in_grid: int) -> str:
    """After the title of the table of own runs: how many runs it stands for, and how many the grid below holds."""
    runs = int(own["runs_completed"].sum())
    if runs == 1:
        return "it is in no grid"
    held = f"the grid below holds {number(in_grid)} of them" if in_grid else "none of them is in a grid"
    return f"all {number(runs)}, the fastest per model and GPU count; {held}"


def _gpus(row: Row) -> str:
    return "an unknown number of GPUs" if row["num_gpus"] is None else devices(row["num_gpus"], row.get("accelerator"))


def _common_strategy(winners: pl.DataFrame) -> str:
    known = winners.drop_nulls("strategy")
    if known.is_empty():
        return ""
    strategies = known["strategy"].value_counts(sort=True)
    name, wins = strategies.row(0)
    name = f"a single {'CPU rank' if are_ranks(winners) else 'GPU'}" if name == "none" else name
    if wins == known.height:
        return f"**{name} wins every cell.**"
    if wins / known.height >= _MOST:
        return f"**{name} wins {number(wins)} of {count(known.height, 'cell')}.**"
    return "**No single layout wins.**"


def _pattern(winners: pl.DataFrame) -> str:
    """Tensor parallelism on few and on many nodes, when the two halves differ; else the best cell."""
    nodes = sorted(winners["num_nodes"].unique().to_list())
    half = len(nodes) // 2
    known = winners.drop_nulls("tp")
    if half and known.height:
        few = known.filter(pl.col("num_nodes") <= nodes[half - 1])
        many = known.filter(pl.col("num_nodes") >= nodes[-half])
        off, needed = int((few["tp"] == 1).sum()), int((many["tp"] >= _HIGH_TP).sum())
        if few.height and many.height and off / few.height >= _CLEAR and needed / many.height >= _CLEAR:
            return (
                f"Up to {count(nodes[half - 1], 'node')}, tensor parallelism is off in {number(off)} of "
                f"{count(few.height, 'winner')}; from {count(nodes[-half], 'node')} on, {number(needed)} of "
                f"{number(many.height)} use TP {_HIGH_TP} or more."
            )
    best = best_first(winners).row(0, named=True)
    return f"The best is {performance(best)}: {cell_name(best)}, {best['layout']}."


def _close_races(winners: pl.DataFrame) -> str:
    compared = winners.drop_nulls("margin")
    close = int((compared["margin"] < _CLOSE).sum())
    if close == 0:
        return ""
    verb = "lead" if close > 1 else "leads"
    return f"{number(close)} of {count(compared.height, 'winner')} {verb} by less than {percent(_CLOSE, 0)}."


def figures(
    cells: pl.DataFrame,
    layouts: int,
    repeated: int,
    wider: Row,
    without_mfu: pl.DataFrame,
    *,
    own: pl.DataFrame | None = None,
) -> list[tuple[str, str, str]]:
    """The four figures as label, value, note.

    Args:
        cells: rows of the grid, with outcomes (`view_models.cells`).
        layouts: completed layouts of the grid.
        repeated: of those, layouts that ran more than once.
        wider: the row of `queries.failures.totals` that Failures shows.
        without_mfu: rows of `queries.overview.without_mfu`.
        own: rows of `queries.overview.completed` where the answer above is about them and not about the grid alone.
    """
    answered = cells.filter(pl.col("run_id").is_not_null())
    best_mfu = _best_mfu(answered, own) or ("not computed", _why_no_mfu(without_mfu))
    rest = "all" if repeated == 0 else "the rest"
    single = f"; {rest} are single runs" if repeated < layouts and layouts > 1 else ""
    return [
        ("Model × nodes with a result", f"{number(answered.height)} of {number(cells.height)}", _unanswered(cells)),
        ("Best MFU", *best_mfu),
        _failures(cells, wider, is_of_all=own is not None),
        ("Layouts measured twice", number(repeated), f"of {number(layouts)} completed{single}"),
    ]


def _best_mfu(answered: pl.DataFrame, own: pl.DataFrame | None) -> tuple[str, str] | None:
    """The best MFU of the grid, or of one's own runs outside of it where that is higher, and whose it is."""
    highest = _highest(answered)
    best = [(row["mfu"], cell_name(row) + _printed(row)) for row in highest.iter_rows(named=True)]
    if own is not None:
        best += [
            (row["mfu"], f"{row['model'] or 'an unknown model'} on {_gpus(row)}, outside this grid{_printed(row)}")
            for row in _highest(own).iter_rows(named=True)
        ]
    if not best:
        return None
    mfu, whose = max(best, key=lambda pair: pair[0])  # the first of equals: the grid's
    return percent(mfu), whose


def _printed(row: Row) -> str:
    beside = beside_computed(row)
    return f"; its log prints {beside}" if beside else ""


def _highest(runs: pl.DataFrame) -> pl.DataFrame:
    return runs.filter(pl.col("mfu") <= 1).sort("mfu", descending=True, maintain_order=True).head(1)


def _unanswered(cells: pl.DataFrame) -> str:
    open_cells = cells.filter(pl.col("run_id").is_null())
    if open_cells.is_empty():
        return "no cell of the grid is empty"
    states = open_cells["cell_state"].value_counts(sort=True)
    return ", ".join(f"{number(n)} {CELL_STATE[state].word}" for state, n in states.iter_rows())


def _why_no_mfu(runs: pl.DataFrame) -> str:
    """What keeps completed runs from having an MFU, most frequent first."""
    if runs.is_empty():
        return "no run has completed"
    reasons = [str(reason).removeprefix("not computed: ") for reason in runs["mfu_basis"]]
    if len(reasons) == 1:
        return reasons[0]
    return "; ".join(f"{reason} ({count(n, 'run')})" for reason, n in zip(reasons, runs["runs"], strict=True))


def _failures(cells: pl.DataFrame, wider: Row, *, is_of_all: bool) -> tuple[str, str, str]:
    """The share that failed in this grid, or of all runs, with which Failures begins; the other one is the note."""
    ended = cells.filter(pl.col("failure_rate").is_not_null())
    tried, every = int(ended["runs_judged"].sum()), int(wider["runs_judged"])
    failed = int(ended["runs_failed"].sum())
    here = f"{number(failed)} of {number(tried)} in this grid" if tried else ""
    if is_of_all and every:
        note = f"; {here}" if here and every > tried else ""
        of_all = f"{number(wider['runs_failed'])} of {'all ' if note else ''}{number(every)}"
        return "Runs that failed", percent(overall_rate(wider), 0), f"{of_all}{note}"
    if not tried:
        return "Runs that failed", numbers.MISSING, "no run completed or failed"
    all_runs = f"; {percent(overall_rate(wider), 0)} of all {number(every)}" if every > tried else ""
    return "Runs that failed", percent(failed / tried, 0), f"{here}{all_runs}"


def worth_running(cells: pl.DataFrame, limit: int = 3) -> list[Item]:
    """Ties, closest first: repeats of both layouts would decide them."""
    ties = cells.filter(pl.col("run_id").is_not_null() & pl.col("is_tie")).sort("margin", maintain_order=True)
    return [
        Item(f"Repeat {cell_name(row)}", f"tie, {part_of(row['margin'], 1)} apart", _key(row))
        for row in ties.head(limit).iter_rows(named=True)
    ]


def planned(plans: pl.DataFrame) -> list[Item]:
    """Planned runs that no run fills yet; `plans` are rows of `queries.plans.plans`."""
    missing = int(plans["runs_missing"].sum())
    return [Item(f"{count(missing, 'planned run')} not run yet", "plans", url="plans")] if missing else []


def furthest_behind(cells: pl.DataFrame, ratios: pl.DataFrame, limit: int = 3) -> list[dict[str, Any]]:
    """Cells whose best run is furthest behind what its hardware allows: where most can still be found.

    `cells` are rows of the grid, `ratios` of `queries.overview.behind`.
    """
    compared = cells.join(ratios, on="run_id", how="inner").sort("time_ratio", "run_id", descending=[True, False])
    return compared.head(limit).to_dicts()


def _key(row: Row) -> tuple[str, str]:
    return row["model"], row["scale"]


# What a finding means for the reader; the figures come from the store.
_FINDINGS = {
    "claimed_best_not_fastest": ("presented as best, but not the fastest run", "claims"),
    "claimed_best_not_ranked": ("presented as best, but kept out of the ranking", "claims"),
    "label_shape_mismatch": ("labelled with another model's size", "labels"),
    "tied_embedding_counted_twice": ("printed MFU counts the tied embedding twice", "MFU audit"),
    "wrong_peak": ("printed MFU divides by another card's or precision's peak", "MFU audit"),
    "other_convention": ("printed MFU counts other FLOPs", "MFU audit"),
    "logged_mfu_differs": ("printed MFU is more than 5 % off", "MFU audit"),
    "mfu_above_100": ("MFU above 100 % of peak", "MFU audit"),
    "hfu_below_mfu": ("printed HFU below the recomputed MFU", "MFU audit"),
    "layout_mismatch": ("layout does not multiply to the GPU count", "layouts"),
    "batch_mismatch": ("layout does not make the batch", "layouts"),
}


def worth_a_look(audit: pl.DataFrame, limit: int = 4) -> list[Item]:
    """Findings of the MFU audit that change what a reader may believe, in the order of that table."""
    counts = dict(audit.select("finding", "runs").iter_rows())
    return [
        Item(f"{count(counts[finding], 'run')}: {text}", kind, key=finding)
        for finding, (text, kind) in _FINDINGS.items()
        if counts.get(finding)
    ][:limit]


_PROBLEMS = (
    ("regressions", "layout", "layouts", "slower in a newer version, beyond the noise", "versions"),
    ("lines_rejected", "line or row", "lines or rows", "could not be read", "rejects"),
    ("values_doubted", "row", "rows", "with values that cannot all be right", "rejects"),
    ("files_rejected", "file", "files", "could not be read at all", "files"),
    ("runs_quarantined", "run", "runs", "kept out of every ranking", "quarantined"),
    ("runs_diverged", "run", "runs", "whose loss became NaN or infinite: ranked by speed all the same", "diverged"),
    ("runs_cut_off", "run", "runs", "counted as failed: the log stops without a reason", "status"),
    ("runs_without_end", "run", "runs", "without evidence of an end: in no failure rate", "status"),
    ("runs_without_cell", "run", "runs", "without model, nodes, sequence or batch: in no grid", "incomplete"),
    ("runs_without_accelerator", "completed run", "completed runs", "without an accelerator: no MFU", "say which"),
    ("runs_in_conflict", "run", "runs", "with sources that disagree on a setting", "conflicts"),
)


def quiet_problems(row: Mapping[str, int]) -> list[Item]:
    """What went wrong without stopping anything; nothing is listed that did not happen."""
    return [
        Item(f"{count(row[name], singular, plural)} {text}", kind, key=name)
        for name, singular, plural, text, kind in _PROBLEMS
        if row[name]
    ]


def meta(scope: str, study: str | None, version: int, published_at: str) -> str:
    """n and the age of the data."""
    return f"{scope}{f' ({study})' if study else ''} · store version {version}, published {published_at} UTC"


def slice_words(chosen: Slice) -> str:
    """The grid's conditions after its title."""
    batch = f", {numbers.token_count(chosen.gbs_tokens)}-token batch" if chosen.gbs_tokens is not None else ""
    sequence = f", sequence {number(chosen.seq_len)}" if chosen.seq_len is not None else ""
    return f"{chosen.accelerator or 'accelerator unknown'}{sequence}{batch}"


def grid_name(other: Other) -> str:
    """A grid in a list: its models, its conditions, and its study where it is of one."""
    names = " and ".join(other.models) if len(other.models) <= _MODELS_NAMED else count(len(other.models), "model")
    study = f"{other.slice.study}: " if other.slice.study else ""
    return f"{study}{names}, {slice_words(other.slice)}"


def grid_size(completed: int, tried: int) -> str:
    """How much a grid holds.

    >>> grid_size(2, 16), grid_size(1, 1)
    ('2 of 16 runs completed', '1 run completed')
    """
    runs = f"{number(completed)} of {number(tried)} runs" if tried > completed else count(tried, "run")
    return f"{runs} completed"
