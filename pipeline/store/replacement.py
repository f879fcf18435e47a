"""Which rows of the lake a commit replaces, and which of them stay, under their file's name or another."""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass

import polars as pl

from sweepscope.schemas.core.table import Table

KEPT = ("overwritten", "rotated", "shrunk", "failed", "unread", "gone")
"""Words of vocab.FILE_STATUS for files whose earlier rows a commit leaves as they are."""

_NAMES = pl.Schema({"path": pl.String, "kept_path": pl.String})
_RUNS = pl.Schema({"run_id": pl.String, "suffix": pl.String})


@dataclass(frozen=True)
class Replacement:
    """What a commit does to the rows that the lake has.

    Attributes:
        listed: paths that the commit brings ledger rows of.
        stale: paths whose rows go.
        names: of those, `path` and `kept_path` of the files whose rows stay: `path#1` where other content has its name.
        kept_runs: `run_id` of their runs, and `suffix`, what their rows from other files get at the end of the name.
        replaced_runs: runs of all other stale paths.
        forgotten_runs: of those, runs whose rows go from every file but `spared` ones.
        spared: parts of rotated logs that are no longer there: their runs go on elsewhere.
    """

    listed: pl.Series
    stale: pl.Series
    names: pl.DataFrame
    kept_runs: pl.DataFrame
    replaced_runs: pl.Series
    forgotten_runs: pl.Series
    spared: pl.Series

    def keys(self, table: Table, frame: pl.DataFrame) -> pl.Series:
        """Values of the table's `replaced_by` column whose rows go: stale paths, and paths that no ledger lists."""
        return pl.concat([self.stale, self._unlisted(table, frame)]).unique()

    def kept_rows(self, table: Table, frame: pl.DataFrame, read: Callable[[pl.Expr], pl.DataFrame]) -> pl.DataFrame:
        """Rows of `table` under `keys` that stay, with the names of their files from now on.

        Folder names and the like are in no ledger; they give settings to the runs of many files, and only those of
        runs that are replaced go.

        Args:
            table: not the ledger itself.
            frame: its new rows.
            read: rows of the table before the commit, by a filter.
        """
        unlisted = self._unlisted(table, frame)
        has_runs = "run_id" in table.column_names and table.name != "runs"
        if self.names.is_empty() and (unlisted.is_empty() or not has_runs):
            return table.empty()
        path = pl.col(table.replaced_by)
        rows = read(path.is_in(self.keys(table, frame).implode()))
        rows = rows.join(self.names, left_on=path, right_on="path", how="left", maintain_order="left")
        kept = pl.col("kept_path")
        if has_runs:
            replaced = pl.concat([self.replaced_runs, frame["run_id"].drop_nulls().unique()])
            rows = rows.join(self.kept_runs, on="run_id", how="left", maintain_order="left")
            of_others = path.is_in(unlisted.implode()) & ~pl.col("run_id").is_in(replaced.implode())
            kept = pl.coalesce(kept, path + pl.col("suffix"), pl.when(of_others).then(path))
        rows = rows.with_columns(kept.alias(table.replaced_by)).drop_nulls(table.replaced_by)
        key = list(table.primary_key)
        return table.conform(rows).join(frame, on=key, how="anti", nulls_equal=True, maintain_order="left")

    def spared_rows(self, table: Table, frame: pl.DataFrame, read: Callable[[pl.Expr], pl.DataFrame]) -> pl.DataFrame:
        """Rows of forgotten runs that stay; arguments as of `kept_rows`."""
        if self.spared.is_empty() or self.forgotten_runs.is_empty() or "run_id" not in table.column_names:
            return table.empty()
        is_spared = pl.col(table.replaced_by).is_in(self.spared.implode())
        rows = read(is_spared & pl.col("run_id").is_in(self.forgotten_runs.implode()))
        key = list(table.primary_key)
        return table.conform(rows).join(frame, on=key, how="anti", nulls_equal=True, maintain_order="left")

    def _unlisted(self, table: Table, frame: pl.DataFrame) -> pl.Series:
        found = frame[table.replaced_by].drop_nulls().unique()
        return found.filter(~found.is_in(self.listed.implode()))


def replacement(files: pl.DataFrame, forget: Collection[str], ledger: pl.DataFrame, runs: pl.DataFrame) -> Replacement:
    """What a commit of `files` does.

    A unit is ingested as a whole: the rows of every file that the ledger knows for a unit in `files`, or that is listed
    there anew, go, unless its status is one of KEPT.

    Args:
        files: the new rows of the ledger.
        forget: further paths whose rows go.
        ledger: `path`, `unit` and `status` of the lake.
        runs: `run_id` and `source_path` of the lake.
    """
    again = [ledger.join(files, on=column, how="semi")["path"] for column in ("unit", "path")]
    kept = files.filter(pl.col("status").is_in(KEPT))
    is_renamed = pl.col("status").is_in(["overwritten", "rotated"])
    before = pl.when(is_renamed).then("former_path").otherwise("path")
    names = kept.select(before.alias("path"), kept_path="path").drop_nulls().cast(_NAMES)
    stale = pl.concat([*again, names["path"], pl.Series("path", list(forget), dtype=pl.String)]).unique()
    # The runs of a rotated log go on in its other parts, which are read anew.
    whole = kept.filter(pl.col("status") != "rotated").select(before.alias("path"), kept_path="path").drop_nulls()
    of_stale = runs.join(stale.to_frame("path"), left_on="source_path", right_on="path", how="semi")
    of_kept = of_stale.join(whole.cast(_NAMES), left_on="source_path", right_on="path")
    suffix = pl.col("kept_path").str.slice(pl.col("source_path").str.len_chars())
    replaced = of_stale.join(of_kept, on="run_id", how="anti")
    return Replacement(
        listed=files["path"],
        stale=stale,
        names=names,
        kept_runs=of_kept.select("run_id", suffix=suffix).cast(_RUNS),
        replaced_runs=replaced["run_id"],
        forgotten_runs=replaced.filter(pl.col("source_path").is_in(list(forget)))["run_id"],
        spared=ledger.filter(~pl.col("path").is_in(list(forget)), status="rotated")["path"],
    )
