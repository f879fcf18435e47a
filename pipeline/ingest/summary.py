"""What an ingest did, counted from the rows that it committed; the command layer says it in words."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import polars as pl

from sweepscope.pipeline.ingest.job_names import job_of
from sweepscope.pipeline.logs.evidence.text_kinds import NOTHING_TELLS
from sweepscope.pipeline.logs.runs.stated import SOURCES_STATED
from sweepscope.pipeline.store.replacement import KEPT

if TYPE_CHECKING:
    from sweepscope.pipeline.ingest.batch import Tables


@dataclass
class Summary:
    """Counts over all batches of one ingest, bundled results left out unless named.

    Attributes:
        files_seen: files under the paths that were given.
        files_new: of those, files that are new or have changed.
        files_resumed: of those, logs that had grown: only their new lines were read.
        other_names: by path, one more name of each file that has several through links.
        files: files by status.
        runs: attempts of the new files by status, as the published store has them.
        copies: attempts beside them that tell of a run again: rows of tables and trackers whose logs were read.
        published: rows of bundled results.
        rows: rows by table, bundled ones included.
        rejected_files: path and reason of each file that could not be read.
        secrets_hidden: by file, the texts in which a credential was hidden.
        unknown_logs: paths of logs of which no line is known.
        dialects: names of the dialect files of the home.
        stated: by column, the new runs of which the user's statement is `used` and `not_used`.
        bytes: size of the new files.
        bytes_read: what had to be read of them.
        seconds: of the whole ingest.
        batches: number of batches that were committed.
        store: path of the published store.
        run_ids: runs of the new files.
    """

    files_seen: int = 0
    files_new: int = 0
    files_resumed: int = 0
    other_names: dict[str, str] = field(default_factory=dict)
    files: Counter[str] = field(default_factory=Counter)
    runs: Counter[str] = field(default_factory=Counter)
    copies: int = 0
    published: int = 0
    rows: Counter[str] = field(default_factory=Counter)
    rejected_files: list[tuple[str, str]] = field(default_factory=list)
    secrets_hidden: dict[str, int] = field(default_factory=dict)
    unknown_logs: list[str] = field(default_factory=list)
    dialects: list[str] = field(default_factory=list)
    stated: dict[str, dict[str, int]] = field(default_factory=dict)
    bytes: int = 0
    bytes_read: int = 0
    seconds: float = 0.0
    batches: int = 0
    store: str = ""
    run_ids: list[str] = field(default_factory=list, repr=False)

    @property
    def mb_per_s(self) -> float | None:
        """Megabytes read per second of the whole ingest; None when nothing was read."""
        return self.bytes_read / 1e6 / self.seconds if self.bytes_read and self.seconds else None

    def add(self, tables: Tables) -> None:
        """Count the rows of one batch, as they were committed."""
        files = tables["files"].filter(pl.col("kind") != "published")
        self.files.update(files["status"].to_list())
        resumed = files.filter(pl.col("read_bytes") < pl.col("bytes"), status="parsed")
        self.files_resumed += resumed.height
        self.bytes_read += int(files.filter(~pl.col("status").is_in(KEPT))["read_bytes"].sum() or 0)
        unreadable = files.filter(pl.col("status").is_in(["rejected", "failed"]))
        self.rejected_files += list(unreadable.select("path", "error").iter_rows())
        self.secrets_hidden.update(
            files.filter(pl.col("secrets_hidden") > 0).select("path", "secrets_hidden").iter_rows()
        )
        is_read = pl.all_horizontal(pl.col("kind") == "log", pl.col("status") == "parsed", pl.col("rows_parsed") == 0)
        is_in_doubt = pl.col("error").str.contains(NOTHING_TELLS, literal=True).fill_null(value=False)
        unknown = files.filter(pl.col("parser").is_null(), pl.col("bytes") > 0, is_read | is_in_doubt)
        # Output beside records of the same run in which its steps are.
        unknown = unknown.join(files.filter(kind="log").filter(pl.col("parser").is_not_null()), on="unit", how="anti")
        # So is a job's output with no more than the commands of its script, where its run logs elsewhere.
        jobs = {*tables["runs"]["job_id"].drop_nulls()}
        self.unknown_logs += [path for path in unknown["path"] if job_of(path.rpartition("/")[2]) not in jobs]
        self.published += tables["runs"].filter(pl.col("origin") == "published").height
        self.run_ids += tables["runs"].filter(pl.col("origin") != "published")["run_id"].to_list()
        statements = tables["settings"].filter(pl.col("setting_source").is_in(SOURCES_STATED))
        for name, is_used in statements.select("name", "is_used").iter_rows():
            counts = self.stated.setdefault(name, {"used": 0, "not_used": 0})
            counts["used" if is_used else "not_used"] += 1
        self.rows.update({name: frame.height for name, frame in tables.items()})
        self.batches += 1
