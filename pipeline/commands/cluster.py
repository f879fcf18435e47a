"""`sweepscope cluster`: what one's clusters are made of, for estimates on them."""

from __future__ import annotations

import argparse
from math import inf
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sweepscope.pipeline.commands.counts import count
from sweepscope.pipeline.commands.note import author, opened
from sweepscope.pipeline.commands.output import say_result, table
from sweepscope.pipeline.commands.verb import Verb
from sweepscope.pipeline.errors import UsageError
from sweepscope.pipeline.reference.clusters import find_cluster, known_cards
from sweepscope.pipeline.store import clusters

if TYPE_CHECKING:
    import polars as pl

    from sweepscope.pipeline.store.home import Home

_ACTIONS = ("list", "add", "show", "remove")


def _add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("action", choices=_ACTIONS, nargs="?", default="list", help="what to do (default: %(default)s)")
    parser.add_argument("name", metavar="NAME", nargs="?", help="the cluster's name")
    parser.add_argument("--accelerator", help="add: for example H100-SXM-80GB")
    parser.add_argument("--nodes", type=count, help="add: hosts that it has")
    parser.add_argument(
        "--gpus-per-node", type=count, help="add: of one host (default: the accelerator's usual number)"
    )
    parser.add_argument("--gpus-per-domain", type=count, help="add: accelerators that links join (default: the usual)")
    parser.add_argument("--nics-per-node", type=count, help="add: network cards of one host")
    parser.add_argument("--nic-gbit", type=float, help="add: what one card carries, Gb/s in one direction")
    parser.add_argument(
        "--nccl-tests",
        metavar="PATH",
        help="add: folder or file of ingested nccl-tests results that were measured on it; estimates then rest on them",
    )


def _run(args: argparse.Namespace) -> int:
    home = opened(args.home, for_writing=args.action in ("add", "remove"))
    if args.action == "list":
        return _list(home, as_json=args.json)
    if args.name is None:
        raise UsageError(f"Write `sweepscope cluster {args.action} NAME`.")
    if args.action == "remove":
        clusters.remove(home, args.name)
        say_result({"removed": args.name}, f"Removed the cluster {args.name}.", as_json=args.json)
        return 0
    if args.action == "add":
        clusters.keep(home, _described(args))
    row = clusters.find(home, args.name)
    return _show(row, clusters.measured(home, row), as_json=args.json)


def _described(args: argparse.Namespace) -> dict[str, Any]:
    """The row that the arguments describe. Raises UsageError for what no cluster can be."""
    if not args.name.strip() or args.accelerator is None:
        raise UsageError("A cluster needs a name and an accelerator: `sweepscope cluster add NAME --accelerator H100`.")
    for option in ("nodes", "gpus_per_node", "gpus_per_domain", "nics_per_node"):
        value = getattr(args, option)
        if value is not None and value < 1:
            raise UsageError(f"--{option.replace('_', '-')} must be at least 1, not {value}.")
    if args.nic_gbit is not None and not 0 < args.nic_gbit < inf:
        raise UsageError(f"--nic-gbit must be positive, not {args.nic_gbit}.")
    if (args.nic_gbit is None) != (args.nics_per_node is None):
        raise UsageError("--nics-per-node and --nic-gbit go together.")
    found = find_cluster(args.accelerator, gpus_per_node=args.gpus_per_node, gpus_per_domain=args.gpus_per_domain)
    if found is None:
        raise UsageError(f"Unknown accelerator: {args.accelerator}. Known: {', '.join(known_cards())}.")
    return {
        "cluster": args.name.strip(),
        "accelerator": found.accelerator,
        "num_nodes": args.nodes,
        "gpus_per_node": found.gpus_per_node,
        "gpus_per_domain": args.gpus_per_domain,
        "nics_per_node": args.nics_per_node,
        "nic_gbit_per_s": args.nic_gbit,
        "nccl_tests": str(Path(args.nccl_tests).absolute()) if args.nccl_tests else None,
        "author": author(),
    }


def _plain(row: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in row.items() if value is not None and name != "described_at"}


def _list(home: Home, *, as_json: bool) -> int:
    rows = [_plain(row) for row in clusters.stored(home).to_dicts()]
    lines = [(row["cluster"], _words(row)) for row in rows]
    nothing = "No cluster has a name. `sweepscope cluster add NAME --accelerator H100-SXM-80GB` describes one."
    say_result(rows, table(lines) if lines else nothing, as_json=as_json)
    return 0


def _words(row: dict[str, Any]) -> str:
    nodes = f"{row['num_nodes']} nodes of " if "num_nodes" in row else ""
    cards = f", {row['nics_per_node']} x {row['nic_gbit_per_s']:g} Gb/s" if "nic_gbit_per_s" in row else ""
    return f"{nodes}{row['gpus_per_node']} {row['accelerator']}{cards}"


def _show(row: dict[str, Any], measured: pl.DataFrame, *, as_json: bool) -> int:
    import polars as pl

    by_size = (
        measured.group_by("op", "nranks", "message_bytes")
        .agg(pl.col("busbw_bytes_per_s").median(), measurements=pl.len())
        .sort("op", "nranks", "message_bytes", nulls_last=True)
    )
    lines = [(row["cluster"], _words(_plain(row)))]
    lines += [
        (
            str(one["op"]),
            f"{one['nranks']} ranks, {one['message_bytes']:,} bytes: {one['busbw_bytes_per_s'] / 1e9:.1f} GB/s",
        )
        for one in by_size.to_dicts()
    ]
    if row["nccl_tests"] and by_size.is_empty():
        lines.append(("nccl-tests", f"none of {row['nccl_tests']} is in the store: ingest it"))
    say_result({**_plain(row), "measured": by_size.to_dicts()}, table(lines), as_json=as_json)
    return 0


VERB = Verb(
    name="cluster",
    description="Clusters with a name: accelerator, hosts, links, network cards, and nccl-tests that were measured "
    "there. `estimate`, `search` and `plan` take them with --cluster NAME.",
    add_arguments=_add_arguments,
    run=_run,
)
"""What the command line lists."""
