"""The answer and the hovers of Scaling. `noun` is what the curves grow in, "node" or "GPU"."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import polars as pl

from sweepscope.dashboard.format import numbers
from sweepscope.dashboard.format.numbers import capital, count, number, percent
from sweepscope.dashboard.queries.query import Row
from sweepscope.dashboard.selection.slices import Slice
from sweepscope.dashboard.view_models.scaling import COST, Baseline

HOW_TO_READ = (
    "**How to read it.** Efficiency is the tokens/s/GPU at a size over that of the baseline: a flat line on the left, "
    "or a line that follows its dots on the right, is perfect scaling. Each point is the fastest layout at that size, "
    "so the layout changes along a line.",
    "**What it hides.** The batch is fixed (strong scaling), so more nodes also mean fewer micro-batches each. With a "
    "batch that grows with the nodes, the loss is smaller.",
)


def baseline_name(baseline: Baseline, noun: str) -> str:
    """The baseline as the end of "keeps 41 % of its ..."."""
    if baseline.kind == "size":
        return f"{number(baseline.size)}-{noun}"
    return "best" if baseline.kind == "best" else "smallest run's"


def baseline_option(value: str, noun: str) -> str:
    """A baseline as a choice in a menu.

    >>> baseline_option("best", "node"), baseline_option("16", "node")
    ('best run of the line', '16 nodes')
    """
    words = {"best": "best run of the line", "first": "smallest run"}
    return words.get(value) or count(int(value), noun)


def answer(
    points: pl.DataFrame,
    lines: Sequence[str],
    baseline: Baseline,
    chosen: Slice,
    noun: str,
    *,
    subject: str = "",
    column: str = "",
) -> str:
    """How much efficiency is left at the largest size, and which step costs most.

    `subject` is the model whose strategies are compared; "" when each line is a model. What a million tokens cost
    comes last, or first where that is the `column` of the chart.
    """
    drawn = points.filter(pl.col("line").is_in(list(lines)) & pl.col("scaling_efficiency").is_not_null())
    if drawn["size"].n_unique() < 2:
        return (
            f"**Nothing to compare yet.** {count(points['line'].n_unique(), 'line')} with results on "
            f"{_sizes(points, noun)}; a curve needs one line with two {noun} counts. Run one of them on another "
            f"{noun} count with the same batch, or choose another grid under Filters."
        )
    largest = max(drawn["size"].to_list())
    left = drawn.filter(pl.col("size") == largest).sort("scaling_efficiency", descending=True)
    parts = [f"{line} {percent(share, 0)}" for line, share in left.select("line", "scaling_efficiency").iter_rows()]
    parts[0] = parts[0].replace(f"{left['line'][0]} ", f"{left['line'][0]} keeps ", 1)
    parts[0] += f" of its {baseline_name(baseline, noun)} throughput per GPU"
    of = f"{subject}: " if subject else ""
    batch = f"with a fixed {numbers.token_count(chosen.gbs_tokens)}-token batch, " if chosen.gbs_tokens else ""
    text = f"{of}{batch}**at {count(largest, noun)} {_joined(parts)}.**"
    price = _price(drawn, noun, baseline, subject)
    if column == COST and price:
        return f"**{price.strip()}** {capital(text).replace('**', '')}"
    return capital(text) + _steepest(drawn, noun) + price


def _price(drawn: pl.DataFrame, noun: str, baseline: Baseline, subject: str) -> str:
    """What a million tokens, and an hour, cost at both ends of the line that reaches furthest; "" without a price.

    The line is followed from the baseline on where that is a size of it.
    """
    if "usd_per_m_tokens" not in drawn.columns:
        return ""
    priced = drawn.drop_nulls("usd_per_m_tokens").sort("size")
    if priced.is_empty():
        return ""
    line = priced.filter(pl.col("size") == priced["size"].max()).sort("usd_per_m_tokens")["line"][0]
    ends = priced.filter(pl.col("line") == line)
    if baseline.kind == "size" and baseline.size in ends["size"]:
        ends = ends.filter(pl.col("size") >= baseline.size)
    first, last = ends.row(0, named=True), ends.row(-1, named=True)
    if first["size"] == last["size"]:
        return ""
    before, after = (numbers.dollars(row["usd_per_m_tokens"]) for row in (first, last))
    sizes = f"{number(first['size'])} to {count(last['size'], noun)}"
    name = f"{subject} with {line}" if subject else line
    return f" From {sizes} a million tokens of {name} go from {before} to {after}{_hour(first, last)}."


def _hour(first: Row, last: Row) -> str:
    """What an hour of all accelerators costs at both ends; empty where their number is unknown."""
    if first["num_gpus"] is None or last["num_gpus"] is None:
        return ""
    before, after = (
        numbers.dollars(row["usd_per_m_tokens"] * row["tokens_per_s_per_gpu"] * row["num_gpus"] * 3600 / 1e6)
        for row in (first, last)
    )
    return f", an hour from {before} to {after}"


def _sizes(points: pl.DataFrame, noun: str) -> str:
    sizes = sorted(set(points["size"]))
    return f"{_joined([number(n) for n in sizes])} {noun}{'' if sizes == [1] else 's'}" if sizes else f"no {noun} count"


def _joined(parts: Sequence[str]) -> str:
    return parts[0] if len(parts) == 1 else f"{', '.join(parts[:-1])} and {parts[-1]}"


def _steepest(drawn: pl.DataFrame, noun: str) -> str:
    """The step between neighbouring sizes that costs most on average over the lines that have both."""
    sizes = sorted(set(drawn["size"]))
    adjacent = pl.DataFrame({"before": sizes[:-1], "size": sizes[1:]}, schema_overrides={"before": pl.Int64})
    steps = (
        drawn.sort("line", "size")
        .with_columns(
            before=pl.col("size").shift(1).over("line"),
            kept=pl.col("scaling_efficiency") / pl.col("scaling_efficiency").shift(1).over("line"),
        )
        .drop_nulls(["before", "kept"])
        .join(adjacent, on=["before", "size"])
        .group_by("before", "size")
        .agg(pl.col("kept").mean(), lines=pl.len())
        .sort("kept", "size")
    )
    if steps.height < 2:
        return ""
    before, size, kept, lines = steps.row(0)
    on_average = " on average" if steps["lines"].max() != 1 else ""
    if kept > 0.98:
        return f" No step costs more than 2 %{on_average}."
    step = f"{number(before)} to {count(size, noun)}"
    return f" The costliest step is {step}: it loses {percent(1 - kept, 0)}{on_average if lines > 1 else ''}."


def meta(points: pl.DataFrame, lines: Sequence[str], chosen: Slice) -> str:
    """What the curves are made of."""
    hidden = points["line"].n_unique() - len(lines)
    parts = [
        f"Best run of {count(points.height, 'cell')}",
        *([chosen.study] if chosen.study else []),
        chosen.accelerator or "accelerator unknown",
        f"sequence {number(chosen.seq_len)}",
    ]
    more = f" {count(hidden, 'more line')} (a single point, or beyond six) only in the table." if hidden > 0 else ""
    return ", ".join(parts) + "." + more


def hover(point: Row, noun: str) -> str:
    """Subject, layout, value, comparison."""
    share = point["scaling_efficiency"]
    speed = f"{number(point['tokens_per_s'])} tokens/s, {number(point['tokens_per_s_per_gpu'])} per GPU"
    lines = [
        f"<b>{numbers.plain(point['line'])} on {count(point['size'], noun)}</b>",
        numbers.plain(point["layout"] or "layout unknown"),
        f"{percent(point['mfu'])} MFU" if point["mfu"] is not None else "MFU not computed",
        speed,
    ]
    if point.get(COST) is not None:
        lines.append(f"{numbers.dollars(point[COST])} per million tokens")
    if share is not None:
        lines.append(f"{percent(share, 0)} of its run on {count(point['baseline_size'], noun)}")
    return "<br>".join(lines)


SHARE_TITLES = {
    "scaling_efficiency": "Scaling efficiency, % of the baseline's throughput per GPU",
    "mfu": "MFU of the best layout, %",
    COST: "$ per million tokens of the best layout",
}
_SHOWN: dict[str, Callable[[float], str]] = {"tokens_per_s": number, COST: numbers.dollars}


def alt(points: pl.DataFrame, lines: Sequence[str], column: str, *, title: str, noun: str) -> str:
    """One chart in a sentence: first and last value of each line."""
    parts = []
    for line in lines:
        rows = points.filter((pl.col("line") == line) & pl.col(column).is_not_null()).sort("size")
        if rows.height:
            first, last = rows.row(0, named=True), rows.row(-1, named=True)
            show = _SHOWN.get(column, percent)
            parts.append(
                f"{line} from {show(first[column])} on {count(first['size'], noun)} "
                f"to {show(last[column])} on {count(last['size'], noun)}"
            )
    return f"{title}: {'; '.join(parts)}." if parts else f"{title}: no line with two points."
