"""The question that `search` and `plan` ask: arguments of a model on a cluster, and the request behind them."""

from __future__ import annotations

import argparse
import difflib
from math import inf
from pathlib import Path
from typing import TYPE_CHECKING

from sweepscope.pipeline.commands.counts import count, tokens_of_a_batch
from sweepscope.pipeline.commands.named_cluster import add_cluster_argument, fill_arguments, on_cluster
from sweepscope.pipeline.errors import UsageError
from sweepscope.schemas.thresholds import CP_TOKENS

if TYPE_CHECKING:
    from sweepscope.pipeline.estimate.search.enumerate import Request
    from sweepscope.pipeline.reference.clusters import Precision
    from sweepscope.pipeline.reference.model_shape import ModelShape

FIRST_YEAR, LAST_YEAR = 2000, 2100


def add_question_arguments(parser: argparse.ArgumentParser, *, is_required: bool = True) -> None:
    """Model, cluster, batch, framework and the choices to try.

    `is_required`: the parser itself asks for what is needed; otherwise `check_question` does, where a command has other
    actions that need nothing of it.
    """
    parser.add_argument(
        "--model", required=is_required, help="a known model, or the path of a Hugging Face config.json"
    )
    parser.add_argument("--nodes", type=count, help="number of nodes; or ask for it with --gpus or --days")
    parser.add_argument("--accelerator", help="for example H100-SXM-80GB; or name a --cluster")
    add_cluster_argument(parser)
    parser.add_argument(
        "--seq-len", type=tokens_of_a_batch, required=is_required, help="tokens of one sequence; 4k are 4,096"
    )
    parser.add_argument(
        "--gbs-tokens",
        type=tokens_of_a_batch,
        required=is_required,
        help="tokens of one step; a multiple of --seq-len; 2M are 2,097,152",
    )
    parser.add_argument("--gpus-per-node", type=count, help="of one host (default: the accelerator's usual number)")
    parser.add_argument(
        "--gpus-per-domain",
        type=count,
        help="accelerators that links join (default: those of a host; 72 for GB200 and GB300, whose links join hosts)",
    )
    parser.add_argument(
        "--max-cp", type=count, help=f"largest degree of context parallelism (default: one per {CP_TOKENS:,} tokens)"
    )
    parser.add_argument("--network-gbit", type=float, help="network per accelerator, Gb/s (default: the card's usual)")
    parser.add_argument("--framework", help="use the constants fitted for it, where there are some (nanotron, ...)")
    parser.add_argument(
        "--execution",
        choices=["eager", "compiled", "graphs"],
        help="PyTorch operator by operator, torch.compile, or CUDA graphs (default: the framework's usual; of one that "
        "nothing is known of, launches cost the mean of eager and compiled)",
    )
    parser.add_argument(
        "--software-year",
        type=float,
        help="year of the software, for example 2026.5: kernels for Hopper and Blackwell get faster from year to year "
        "(default: the year the constants are of, 2024 and 2026)",
    )
    products = parser.add_mutually_exclusive_group()
    products.add_argument("--fp8", action="store_true", help="matrix products in FP8")
    products.add_argument("--fp4", action="store_true", help="matrix products in FP4 (NVFP4, MXFP4)")
    parser.add_argument(
        "--schedules",
        default="1f1b,interleaved",
        help="pipeline schedules to try, with commas between: afab, 1f1b, interleaved, zb-h1, zb-v, dualpipe, "
        "dualpipe-v; or all (default: %(default)s)",
    )
    parser.add_argument(
        "--shard-groups",
        default="all",
        help="ranks that share one copy of what ZeRO shards, with commas between: all data-parallel ranks, those in "
        "one node, or a number as in HSDP, for example all,node,32 (default: %(default)s)",
    )


def check_question(args: argparse.Namespace, *needed: str) -> None:
    """Raises UsageError naming the arguments among `needed` that were not given."""
    missing = [f"--{name.replace('_', '-')}" for name in needed if getattr(args, name) is None]
    if missing:
        raise UsageError(f"the following arguments are required: {', '.join(missing)}. --help shows an example.")


def _shape(name: str) -> ModelShape:
    from sweepscope.pipeline.reference.hf_config import read_config
    from sweepscope.pipeline.reference.models import find_model, known_models, shape_of

    if name.endswith(".json"):
        return read_config(Path(name))
    row = find_model(name)
    if row is None:
        raise UsageError(f"Unknown model: {name}. Known: {', '.join(known_models())}; or give a config.json.")
    return shape_of(row)


def make_request(args: argparse.Namespace) -> Request:
    """The request behind the arguments. Raises UsageError with one line for what cannot be laid out."""
    from sweepscope.pipeline.estimate.calibration.own_runs import with_own
    from sweepscope.pipeline.estimate.rows.asking import question_on
    from sweepscope.pipeline.estimate.search.enumerate import Request
    from sweepscope.pipeline.reference.clusters import find_cluster, known_cards, with_network
    from sweepscope.pipeline.store.home import Home

    home = Home.resolve(args.home, for_writing=False)
    named = fill_arguments(args, home)
    if args.accelerator is None:
        raise UsageError("the following arguments are required: --accelerator (or --cluster). --help shows an example.")
    for name in ("nodes", "seq_len", "gbs_tokens", "top", "gpus_per_node", "gpus_per_domain", "max_cp"):
        value: int | None = getattr(args, name, None)
        if value is not None and value < 1:
            raise UsageError(f"--{name.replace('_', '-')} must be at least 1, not {value}.")
    if not 0 <= args.margin < 1:
        raise UsageError(f"--margin is a share between 0 and 1, not {args.margin}.")
    shape = _shape(args.model)
    cluster = find_cluster(args.accelerator, gpus_per_node=args.gpus_per_node, gpus_per_domain=args.gpus_per_domain)
    if cluster is None:
        raise UsageError(f"Unknown accelerator: {args.accelerator}. Known: {', '.join(known_cards())}.")
    if args.network_gbit is not None:
        if not 0 < args.network_gbit < inf:
            raise UsageError(f"--network-gbit must be positive, not {args.network_gbit}.")
        cluster = with_network(cluster, args.network_gbit)
    if args.software_year is not None and not FIRST_YEAR <= args.software_year < LAST_YEAR:
        raise UsageError(f"--software-year is a year such as 2026.5, not {args.software_year:g}.")
    if args.gbs_tokens % args.seq_len:
        raise UsageError(f"--gbs-tokens {args.gbs_tokens} is no multiple of --seq-len {args.seq_len}.")
    precision: Precision = "fp4" if args.fp4 else "fp8" if args.fp8 else "bf16"
    if precision not in cluster.precisions:
        raise UsageError(
            f"{cluster.accelerator} has no {precision.upper()}: leave --{precision} out, or name another accelerator."
        )
    folder = home.path / "calibration"
    _check_framework(args.framework, folder)
    choose = on_cluster(with_own(folder), named, home) if named else with_own(folder)
    stated = {"execution": args.execution, "software_year": args.software_year}
    asked = question_on(cluster, shape, args.seq_len, precision, choose=choose, framework=args.framework, stated=stated)
    return Request(
        asked,
        num_gpus=(args.nodes or 1) * cluster.gpus_per_node,
        gbs=args.gbs_tokens // args.seq_len,
        max_cp=args.max_cp,
        schedules=read_schedules(args.schedules),
        shard_groups=read_groups(args.shard_groups),
    )


def _check_framework(name: str | None, own: Path) -> None:
    """Raises UsageError for a framework that neither logs nor a profile are known of."""
    from sweepscope.pipeline.estimate.physics.profile import load_profiles
    from sweepscope.schemas import vocab

    profiles = [*load_profiles(), *(path.stem for path in sorted(own.glob("*.toml")))]
    known = {*vocab.FRAMEWORK, *(stem.partition("-")[2] for stem in profiles)} - {""}
    if name is not None and name not in known:
        near = difflib.get_close_matches(name, sorted(known), n=3)
        hint = f"Did you mean {' or '.join(near)}?" if near else f"Known: {', '.join(sorted(known))}."
        raise UsageError(f"Unknown framework: {name}. {hint} Without --framework the card's constants are used.")


def read_schedules(text: str) -> tuple[str, ...]:
    """Words of SCHEDULES of "1f1b,zb-v" or "all". Raises UsageError for others."""
    from sweepscope.pipeline.estimate.physics.layouts import SCHEDULES

    words = [word.strip().casefold() for word in text.split(",") if word.strip()]
    if words == ["all"]:
        return SCHEDULES
    if unknown := [word for word in words if word not in SCHEDULES]:
        raise UsageError(f"Unknown schedule: {', '.join(unknown)}. Known: {', '.join(SCHEDULES)}; or all.")
    if not words:
        raise UsageError(f"--schedules names none. Known: {', '.join(SCHEDULES)}; or all.")
    return tuple(dict.fromkeys(["1f1b", *words]))  # one stage has no other


def read_groups(text: str) -> tuple[str | int, ...]:
    """Groups of "all,node,32". Raises UsageError for anything else."""
    groups: list[str | int] = []
    for word in (word.strip().casefold() for word in text.split(",") if word.strip()):
        if word not in ("all", "node") and not (word.isdecimal() and int(word) > 0):
            raise UsageError(f"--shard-groups takes all, node or a number of ranks, not {word!r}.")
        groups.append(int(word) if word.isdecimal() else word)
    if not groups:
        raise UsageError("--shard-groups names none: give all, node or a number of ranks.")
    return tuple(dict.fromkeys(groups))
