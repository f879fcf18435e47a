"""`sweepscope search --gpus`: how many accelerators a model needs, and `--shapes`: models near it that run better."""

from __future__ import annotations

import argparse
import re
from dataclasses import asdict
from math import isfinite
from typing import TYPE_CHECKING, Any

from sweepscope.pipeline.commands.counts import read_count
from sweepscope.pipeline.commands.output import say_result
from sweepscope.pipeline.errors import UsageError

if TYPE_CHECKING:
    import polars as pl

    from sweepscope.pipeline.estimate.search.enumerate import Request
    from sweepscope.pipeline.estimate.search.near_shapes import NearShape
    from sweepscope.pipeline.estimate.search.sizes import Size

MOST_SIZES = 64
WORTH_A_CHANGE = 0.005
"""Gain below which a change of the model is not listed: constants are not as exact as that."""
_SUFFIX = {"": 1.0, "k": 1e3, "m": 1e6, "b": 1e9, "t": 1e12}


def add_size_arguments(parser: argparse.ArgumentParser) -> None:
    """The arguments that ask for a number of accelerators, or for near shapes."""
    parser.add_argument(
        "--gpus",
        help="how many accelerators are needed: a range that doubles (8-1024) or a list (48,64); instead of --nodes",
    )
    parser.add_argument("--tokens", help="tokens to train on, such as 15T: sizes are given in days and GPU-hours")
    parser.add_argument("--days", type=float, help="the fewest accelerators that train on --tokens in so many days")
    parser.add_argument(
        "--shapes", action="store_true", help="shapes near the model's that gain MFU: layers, heads, width, vocabulary"
    )


def read_tokens(text: str) -> float:
    """Tokens of "15T", "300B" or "1.5e12". Raises UsageError for anything else.

    >>> read_tokens("15T"), read_tokens("300e9")
    (15000000000000.0, 300000000000.0)
    """
    try:
        tokens = read_count(text)
    except ValueError:
        tokens = 0
    if tokens < 1:
        raise UsageError(f"--tokens takes a number such as 300B, 15T or 1.5e12, not {text!r}.")
    return float(tokens)


def say_tokens(tokens: float) -> str:
    """Tokens in short.

    >>> say_tokens(15e12), say_tokens(300e9), say_tokens(2.5e6)
    ('15T tokens', '300B tokens', '2.5M tokens')
    """
    suffix = next((one for one in "TBM" if tokens >= _SUFFIX[one.casefold()]), "")
    return f"{tokens / _SUFFIX[suffix.casefold()]:.4g}{suffix} tokens"


def read_counts(text: str, gpus_per_node: int) -> list[int]:
    """Accelerators of "8-1024" (doubling) or "48,64", ascending. Raises UsageError for what is neither.

    Beyond one node a count is whole nodes.

    >>> read_counts("8-32", 8), read_counts("64, 48", 8)
    ([8, 16, 32], [48, 64])
    """
    from sweepscope.pipeline.estimate.search.sizes import doublings

    counts: set[int] = set()
    for part in text.split(","):
        found = re.fullmatch(r"\s*([0-9]{1,7})\s*(?:(?:-|\.\.)\s*([0-9]{1,7}))?\s*", part)
        first, last = (int(found[1]), int(found[2] or found[1])) if found else (0, 0)
        if not 0 < first <= last:
            raise UsageError(f"--gpus takes a range that doubles (8-1024) or a list (48,64), not {text!r}.")
        counts.update(doublings(first, last))
    if odd := [count for count in sorted(counts) if count > gpus_per_node and count % gpus_per_node]:
        raise UsageError(f"--gpus {odd[0]} is no whole number of nodes of {gpus_per_node}; see --gpus-per-node.")
    if len(counts) > MOST_SIZES:
        raise UsageError(f"--gpus names {len(counts)} sizes; at most {MOST_SIZES} are searched at once.")
    return sorted(counts)


def check_size_arguments(args: argparse.Namespace) -> None:
    """Raises UsageError for arguments that do not go together."""
    if args.nodes is None and args.gpus is None and args.days is None:
        raise UsageError(
            "Name the cluster with --nodes, or ask for its size with --gpus 8-1024 or --tokens and --days."
        )
    if args.nodes is not None and (args.gpus is not None or args.days is not None):
        raise UsageError("--nodes names one size; --gpus and --days ask for it. Give one of them.")
    if args.days is not None and not (args.days > 0 and isfinite(args.days)):
        raise UsageError(f"--days must be positive, not {args.days}.")
    if args.days is not None and args.tokens is None:
        raise UsageError("--days needs --tokens: how many are to be trained on?")
    if args.tokens is not None and args.nodes is not None:
        raise UsageError("--tokens goes with --gpus or --days, which ask for a size.")
    if args.shapes and args.nodes is None:
        raise UsageError("--shapes looks at one size: give --nodes.")


def answer_sizes(request: Request, args: argparse.Namespace) -> int:
    """Prints the fastest layout of each size, and the fewest accelerators that meet the target."""
    from sweepscope.pipeline.estimate.search.sizes import enough, fewest, size_table, sizes

    tokens = read_tokens(args.tokens) if args.tokens is not None else None
    how = {"margin": args.margin, "by": args.rank}
    if args.gpus is not None:
        found = sizes(request, read_counts(args.gpus, request.asked.cluster.gpus_per_node), **how)
    else:
        found = list(enough(request, tokens or 0.0, args.days, **how))
    if not any(size.row for size in found):
        reasons = "; ".join(sorted({size.reason for size in found}))
        raise UsageError(f"No size up to {found[-1].num_gpus:,} accelerators has a layout that fits: {reasons}.")
    table = size_table(found, tokens)
    chosen = fewest(found, tokens, args.days) if tokens and args.days else None
    answer = say_sizes(found, tokens, args.days, chosen)
    if args.out:
        table.write_csv(args.out)
    value = {
        "sizes": table.to_dicts(),
        "answer": answer,
        "num_gpus": chosen.num_gpus if chosen else None,
        "profile": request.asked.profile.name,
    }
    say_result(value, f"{_size_lines(table)}\n\n{answer}", as_json=args.json)
    return 0


def say_sizes(found: list[Size], tokens: float | None, days: float | None, chosen: Size | None) -> str:
    """The answer in one sentence."""
    fitting = [size for size in found if size.row]
    first, fastest = fitting[0], max(fitting, key=lambda size: size.tokens_per_s)
    if tokens and days:
        if chosen is not None:
            return (
                f"{chosen.num_gpus:,} accelerators train on {say_tokens(tokens)} in {chosen.days(tokens):.3g} days at "
                f"{chosen.mfu:.1%} MFU: the fewest of those searched that need at most {days:g}."
            )
        return (
            f"None of these sizes trains on {say_tokens(tokens)} in {days:g} days at this batch: {fastest.num_gpus:,} "
            f"accelerators, the fastest, take {fastest.days(tokens):.3g}. A larger --gbs-tokens lets more of them help."
        )
    keep = [size for size in fitting if size.mfu >= 0.9 * first.mfu]
    most = max(keep, key=lambda size: size.num_gpus)
    kept = f"{most.num_gpus:,} still reach 90 % of that"
    tops = kept if most is fastest else f"{kept}, and {fastest.num_gpus:,} are the fastest"
    return f"The model fits from {first.num_gpus:,} accelerators on ({first.mfu:.1%} MFU). At this batch {tops}."


def _size_lines(table: pl.DataFrame) -> str:
    """Sizes as lines: accelerators, MFU, efficiency, throughput, days and layout, or why there is none."""
    from sweepscope.pipeline.reference.layout_text import full_layout_text

    has_days = table["days"].count() > 0
    lines = [
        f"{'GPUs':>7}  {'MFU':>6}  {'of first':>8}  {'tokens/s':>12}" + ("      days  GPU-hours" if has_days else "")
    ]
    for row in table.iter_rows(named=True):
        if row["mfu"] is None:
            lines.append(f"{row['num_gpus']:>7,}  {row['reason']}")
            continue
        figures = f"{row['num_gpus']:>7,}  {row['mfu']:>6.1%}  {row['scaling_efficiency']:>8.0%}"
        figures += f"  {row['tokens_per_s']:>12,.0f}"
        if has_days:
            figures += f"  {row['days']:>8,.1f}  {row['gpu_hours']:>9.3g}"
        lines.append(f"{figures}  {full_layout_text(row)}")
    return "\n".join(lines)


def shape_value(found: list[NearShape]) -> list[dict[str, Any]]:
    """Near shapes as `--json` prints them."""
    return [
        {
            "change": one.change,
            "gain": one.gain,
            "params_change": one.params_change,
            "mfu": one.size.mfu,
            "layout": one.size.row,
            "shape": asdict(one.shape),
        }
        for one in found
    ]


def shape_lines(found: list[NearShape]) -> str:
    """What near shapes gain, as lines; one line where none does."""
    from sweepscope.pipeline.reference.layout_text import full_layout_text

    better = [one for one in found if one.gain >= WORTH_A_CHANGE and one.size.row]
    if not better:
        tried = f"{len(found)} near shapes were tried" if found else "there is no near shape that divides better"
        return f"No near shape gains {WORTH_A_CHANGE:.1%} or more: {tried}."
    lines = [
        f"  {one.gain:+.1%}  {one.change} ({one.params_change:+.1%} parameters): {full_layout_text(one.size.row or {})}"
        for one in better
    ]
    return "\n".join(["Near shapes, by what they gain in MFU over this model:", *lines])
