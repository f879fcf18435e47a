"""The interface for notebooks: a store as frames, estimates and searches, by the functions of the command line.

What is named here is stable: names and arguments change with a version's major number only. Frames are polars frames
whose columns schemas/DICTIONARY.md explains. Errors are those of `sweepscope.pipeline.errors`, with a remedy.
"""

from __future__ import annotations

import argparse
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from os import PathLike, fspath
from pathlib import Path
from typing import TYPE_CHECKING

from sweepscope.pipeline.errors import UsageError
from sweepscope.pipeline.store.home import Home

if TYPE_CHECKING:
    import polars as pl

    from sweepscope.pipeline.estimate.search.search import Found

_NEAR = 5


@dataclass(frozen=True)
class Store:
    """The published store of one home. Every question opens the version that is current, read-only.

    `home` is the directory of lake and store.
    """

    home: Path

    def sql(self, query: str, parameters: Mapping[str, object] | None = None) -> pl.DataFrame:
        """Rows of one read-only query; values of `$name` in it are bound from `parameters`.

        Raises:
            QueryError: it fails, is more than one statement, or is no query.
            NoStoreError: nothing was ingested into this home yet.
        """
        from sweepscope.pipeline.commands.query import run_query

        return run_query(Home(self.home), query, parameters)

    def runs(
        self,
        *,
        model: str | None = None,
        nodes: int | None = None,
        origin: str | None = None,
        sweep: str | None = None,
        status: str | None = None,
    ) -> pl.DataFrame:
        """One row per run, in the columns of `runs`: those of every given value, repeated readings of one run left out.

        Raises UsageError for a value that no run has.
        """
        chosen = {"model": model, "num_nodes": nodes, "origin": origin, "sweep": sweep, "status": status}
        return self._where("runs", chosen, condition="duplicate_of IS NULL", order="started_at, run_id")

    def best_configs(
        self,
        *,
        model: str | None = None,
        nodes: int | None = None,
        origin: str | None = None,
        accelerator: str | None = None,
        seq_len: int | None = None,
        gbs_tokens: int | None = None,
    ) -> pl.DataFrame:
        """One row per cell, in the columns of the view `best_configs`: the fastest layout, the runner-up, how sure.

        `is_tie` and `chance_best` say how far the lead can be trusted. `origin` is measured (runs of one's own),
        published or simulated; without it the rows of all three. Raises UsageError for a value that no cell has.
        """
        chosen = {"model": model, "num_nodes": nodes, "origin": origin, "accelerator": accelerator}
        chosen |= {"seq_len": seq_len, "gbs_tokens": gbs_tokens}
        return self._where("best_configs", chosen, order="origin, params, model, num_nodes, seq_len, gbs_tokens")

    def _where(self, table: str, chosen: Mapping[str, object], *, order: str, condition: str = "true") -> pl.DataFrame:
        """Rows of a table in which every column of `chosen` has its value. Raises UsageError where one has none."""
        given = {name: value for name, value in chosen.items() if value is not None}
        where = " AND ".join([condition, *(f"{name} = ${name}" for name in given)])
        found = self.sql(f"SELECT * FROM {table} WHERE {where} ORDER BY {order}", given)
        if found.is_empty():
            self._check(table, given)
        return found

    def _check(self, table: str, given: Mapping[str, object]) -> None:
        """Raises UsageError for the first value that the column does not have at all, with what it has instead.

        Values that are there, but in no row together, are an answer of no rows.
        """
        for name, value in given.items():
            known = self.sql(f"SELECT DISTINCT {name} AS value FROM {table} WHERE {name} IS NOT NULL ORDER BY ALL")
            texts = [str(one) for one in known["value"]]
            if str(value) not in texts:
                near = get_close_matches(str(value), texts, n=_NEAR, cutoff=0.3) or texts[:_NEAR]
                label = "nodes" if name == "num_nodes" else name
                has = f"It has, among others: {', '.join(near)}." if near else "It has no rows."
                raise UsageError(f"{table} has no row of {label} {value!r}. {has}")


def open_store(home: str | PathLike[str] | None = None) -> Store:
    """The store of a home: the given directory, else SWEEPSCOPE_HOME, else the XDG data directory.

    Raises:
        UsageError: `home` is no directory.
        NoStoreError: nothing was ingested into it yet.
    """
    from sweepscope.pipeline.store.published import current

    found = Home.resolve(None if home is None else fspath(home), for_writing=False)
    current(found.path)
    return Store(found.path)


def estimate(
    rows: pl.DataFrame | Mapping[str, object] | Sequence[Mapping[str, object]],
    *,
    home: str | PathLike[str] | None = None,
) -> pl.DataFrame:
    """The given configurations with predicted memory, step time and MFU in columns that begin with `est_`.

    Args:
        rows: a frame, one configuration, or several, named as the columns of `runs`: model, accelerator, num_nodes,
            seq_len, dp, tp, pp, mbs, gas and so on. What they leave open is assumed, and named in `est_assumptions`.
        home: where `sweepscope calibrate` kept constants of one's own runs.

    A row that cannot be estimated has the reason in `est_status`; that of the others is "ok".
    """
    import polars as pl

    from sweepscope.pipeline.estimate.calibration.own_runs import with_own
    from sweepscope.pipeline.estimate.rows.estimate_rows import estimate_frame

    frame = rows if isinstance(rows, pl.DataFrame) else pl.DataFrame([rows] if isinstance(rows, Mapping) else rows)
    folder = Home.resolve(None if home is None else fspath(home), for_writing=False).path / "calibration"
    return estimate_frame(frame, with_own(folder), assumes=True)


def search(
    *,
    model: str,
    nodes: int,
    seq_len: int,
    gbs_tokens: int,
    accelerator: str | None = None,
    top: int = 10,
    margin: float = 0.05,
    rank: str = "auto",
    home: str | PathLike[str] | None = None,
    **options: object,
) -> Found:
    """The fastest layouts that fit, out of all of a model on a cluster; `.layouts` and `.front` are frames.

    Args:
        model: a known name, or the path of a Hugging Face config.json.
        nodes: hosts.
        seq_len: tokens of one sequence.
        gbs_tokens: tokens of one step, a multiple of `seq_len`.
        accelerator: for example H100-SXM-80GB; not needed where `cluster` names one of `sweepscope cluster`.
        top: layouts in `.layouts`.
        margin: share of the memory to leave free.
        rank: auto, physics or expected, as `sweepscope search --rank`.
        home: where constants of one's own runs are kept.
        options: further ones of `sweepscope search`, by their names: cluster, gpus_per_node, gpus_per_domain,
            network_gbit, framework, execution, fp8, schedules, shard_groups.

    `.fitting` is 0 where nothing fits, and `.pruned` counts why. Raises UsageError for what cannot be laid out.
    """
    from sweepscope.pipeline.commands.question import add_question_arguments, make_request
    from sweepscope.pipeline.estimate.search.search import search as best_layouts

    parser = argparse.ArgumentParser(add_help=False)
    add_question_arguments(parser, is_required=False)
    args = parser.parse_args([])
    if unknown := sorted(options.keys() - vars(args).keys()):
        raise UsageError(f"search has no option {unknown[0]}. It has: {', '.join(sorted(vars(args)))}.")
    given = {"model": model, "accelerator": accelerator, "nodes": nodes, "seq_len": seq_len, "gbs_tokens": gbs_tokens}
    vars(args).update(
        {**given, **options, "top": top, "margin": margin, "home": None if home is None else fspath(home)}
    )
    if rank not in ("auto", "physics", "expected"):
        raise UsageError(f"rank is auto, physics or expected, not {rank!r}.")
    try:
        return best_layouts(make_request(args), top=top, margin=margin, by=rank)
    except UsageError as error:
        raise UsageError(_of_python(str(error))) from error


def _of_python(message: str) -> str:
    """A message that names options of the command line, naming arguments of the function.

    >>> _of_python("--gbs-tokens 5 is no multiple of --seq-len 4.")
    'gbs_tokens 5 is no multiple of seq_len 4.'
    """
    return re.sub(r"--([a-z][a-z0-9-]*)", lambda found: found[1].replace("-", "_"), message)
