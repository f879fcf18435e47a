"""Files that hold the same content, or the beginning of another's: moved, renamed, compressed and copied ones.

Content is compared by its size and fingerprint (`pipeline.io.content`), which reading gives on the way. Files are read
once more only where one may be the beginning of another, and of plain ones only the bytes of the fingerprint.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, field

import polars as pl

from sweepscope.pipeline.io.content import HEAD_DIGITS
from sweepscope.pipeline.io.files import exists
from sweepscope.pipeline.io.reader import Reader
from sweepscope.pipeline.io.rotated import rotation
from sweepscope.pipeline.io.spill import stretches

Row = Mapping[str, object]
"""One row of the ledger."""

_MANY = 20
"""More files than these that begin alike are not compared with each other."""


@dataclass(frozen=True)
class Held:
    """Content of one file.

    Attributes:
        path: name in the ledger.
        unit: its unit.
        kind: its kind.
        size: `content_bytes`.
        digest: `content_digest`.
        head: `content_head`.
        id_path: path that its run ids are made from.
        log: the log that it is a part of; the file itself where it is none.
        steps: number of steps that were read of it.
        is_dated: whether one of its runs has a time.
        jobs: job ids of its runs.
    """

    path: str
    unit: str
    kind: str
    size: int
    digest: str
    head: str
    id_path: str
    log: str
    steps: int = 0
    is_dated: bool = False
    jobs: frozenset[str] = frozenset()

    @property
    def names_run(self) -> bool:
        """Whether no other run would have printed this content."""
        return self.kind != "log" or self.steps > 0 or self.is_dated


def held(rows: Iterable[Row], runs: pl.DataFrame, steps: pl.DataFrame) -> list[Held]:
    """Contents of ledger rows that have one.

    Args:
        rows: of the ledger.
        runs: `source_path`, `started_at`, `job_id` of the runs that were read from them.
        steps: `source_path` of the steps that were read from them.
    """
    per_run = runs.group_by("source_path").agg(
        pl.col("started_at").is_not_null().any(), pl.col("job_id").drop_nulls().unique()
    )
    of_runs = {path: (bool(is_dated), frozenset(jobs)) for path, is_dated, jobs in per_run.iter_rows()}
    # Neighbours are mostly of one file: of a million rows a few stretches remain.
    of_steps = dict(stretches(steps["source_path"]).group_by("value").agg(pl.col("len").sum()).iter_rows())
    found = []
    for row in rows:
        size, digest, path = row["content_bytes"], row["content_digest"], str(row["path"])
        if isinstance(size, int) and isinstance(digest, str) and size:
            is_dated, jobs = of_runs.get(path, (False, frozenset[str]()))
            found.append(
                Held(
                    path=path,
                    unit=str(row["unit"]),
                    kind=str(row["kind"]),
                    size=size,
                    digest=digest,
                    head=str(row["content_head"] or ""),
                    id_path=str(row["id_path"] or row["part_of"] or path),
                    log=str(row["part_of"] or path),
                    steps=of_steps.get(path, 0),
                    is_dated=is_dated,
                    jobs=jobs,
                )
            )
    return found


def alike(ledger: pl.DataFrame, files: pl.DataFrame) -> pl.DataFrame:
    """Rows of `ledger` whose content may be that of a row of `files`, its beginning, or its continuation."""
    heads = files["content_head"].drop_nulls().unique()
    longest = int(heads.str.len_chars().max() or 0)  # type: ignore[arg-type]  # a whole number
    lengths = range(HEAD_DIGITS, longest + 1, HEAD_DIGITS)
    known = pl.col("content_head")
    begins_one = pl.any_horizontal(
        pl.lit(value=False),
        *(
            (known.str.len_chars() == length)
            & known.is_in(heads.filter(heads.str.len_chars() >= length).str.slice(0, length).unique().implode())
            for length in lengths
        ),
        *(
            (known.str.len_chars() > length)
            & known.str.slice(0, length).is_in(heads.filter(heads.str.len_chars() == length).implode())
            for length in lengths
        ),
    )
    is_equal = pl.col("content_digest").is_in(files["content_digest"].drop_nulls().implode())
    return ledger.filter(begins_one | is_equal)


@dataclass
class Contents:
    """Contents by which new files are recognised.

    Attributes:
        changed: paths that hold other content by now than the ledger has of them.
        has_steps_of: whether the lake has all steps of a new file under another path, whose bytes are gone.
    """

    changed: Collection[str]
    has_steps_of: Callable[[str, str], bool]
    _equal: dict[tuple[int, str], list[Held]] = field(default_factory=lambda: defaultdict(list))
    _by_head: dict[str, list[Held]] = field(default_factory=lambda: defaultdict(list))
    _by_beginning: dict[str, list[Held]] = field(default_factory=lambda: defaultdict(list))
    _there: dict[Held, bool] = field(default_factory=dict)
    _of_log: dict[str, list[Held]] = field(default_factory=lambda: defaultdict(list))

    def add(self, known: Held, *, is_new: bool = False) -> None:
        """Make a content known; a new one has just been read."""
        if is_new:
            self._there[known] = True
        self._equal[known.size, known.digest].append(known)
        self._of_log[known.log].append(known)
        if known.head and known.kind == "log":
            self._by_head[known.head].append(known)
            for beginning in _beginnings(known.head):
                self._by_beginning[beginning].append(known)

    def is_there(self, known: Held) -> bool:
        """Whether the file still holds what the ledger has of it."""
        if known not in self._there:
            self._there[known] = (
                known.path not in self.changed
                and exists(known.path)
                and Reader(known.path).begins_with(known.size, known.digest)
            )
        return self._there[known]

    def parts(self, log: str) -> list[Held]:
        """Known parts of a log that tell which run it is, oldest first."""
        parts = [known for known in self._of_log[log] if known.names_run]
        return sorted(parts, key=lambda known: rotation(known.path.rpartition("/")[2])[1])

    def equal(self, new: Held) -> list[Held]:
        """Files with the same content, if it is that of one run: ten runs that died alike are ten runs."""
        found = [known for known in self._equal[new.size, new.digest] if known.path != new.path]
        if not new.names_run:
            return []
        return [known for known in found if new.steps or not (known.jobs and new.jobs and known.jobs != new.jobs)]

    def beginnings(self, new: Held) -> list[Held]:
        """Files whose content is the beginning of this one's, the longest first."""
        found = [
            known
            for beginning in _beginnings(new.head)
            for known in self._by_head.get(beginning, [])
            if known.size < new.size and known.steps and known.path != new.path
        ]
        return self._checked(found, lambda known: Reader(new.path).begins_with(known.size, known.digest))

    def continuations(self, new: Held) -> list[Held]:
        """Files whose content begins, or began, with this one's."""
        if not (new.steps and new.head):
            return []
        found = [known for known in self._by_beginning.get(new.head, []) if known.size > new.size]
        found = [known for known in found if known.path != new.path]
        return self._checked(
            found,
            lambda known: (
                Reader(known.path).begins_with(new.size, new.digest)
                if self.is_there(known)
                else self.has_steps_of(new.path, known.path)
            ),
        )

    def _checked(self, found: list[Held], is_so: Callable[[Held], bool]) -> list[Held]:
        by_size = sorted(found, key=lambda known: (-known.size, known.path))[:_MANY]
        return [known for known in by_size if is_so(known)]


def _beginnings(head: str) -> list[str]:
    return [head[:end] for end in range(HEAD_DIGITS, len(head) + 1, HEAD_DIGITS)]
