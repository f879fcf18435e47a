"""Kind, unit, job and sweep of files, from their names alone. Opens no file."""

from __future__ import annotations

import posixpath
import re
from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from functools import cache, partial

import polars as pl

from sweepscope.pipeline.ingest.file_kinds import (
    EARLIER,
    PBS_STREAM,
    RECORD_SUFFIXES,
    TABLE_SUFFIXES,
    aliases,
    file_kind,
    file_kinds,
    may_be_data,
    may_configure,
)
from sweepscope.pipeline.ingest.folder_roles import log_roles
from sweepscope.pipeline.ingest.job_names import job_of
from sweepscope.pipeline.ingest.run_tree import Listed, Place, places
from sweepscope.pipeline.io.archives import without_suffix
from sweepscope.pipeline.io.files import Entry
from sweepscope.pipeline.io.rotated import rotated_logs
from sweepscope.pipeline.logs.dialect import Dialect, marks_run
from sweepscope.pipeline.logs.registry import DIALECTS
from sweepscope.pipeline.logs.runs.readings import LATEST
from sweepscope.pipeline.logs.trackers import names as trackers
from sweepscope.pipeline.nccl import names

FOUND = pl.Schema(
    {
        "path": pl.String,
        "unit": pl.String,
        "job": pl.String,
        "kind": pl.String,
        "bytes": pl.Int64,
        "mtime": pl.Float64,
        "run_dir": pl.String,
        "sweep": pl.String,
        "launch": pl.String,
        "origin": pl.String,
        "linked_path": pl.String,
        "part_of": pl.String,
        "part": pl.Int64,
        "stated": pl.String,
    }
)
"""One row per file found. `kind` is a word of vocab.FILE_KIND; `unit` is ingested, and replaced, as a whole. `launch`
is the folder below the run's that tells an attempt of it from others. `linked_path` is the real path where `path` is a
link, or leads through one. Files of a rotated log have its path as `part_of` and are numbered from the oldest `part`
on. `stated` is what the user states of a file's runs (`statements.with_stated`), NULL for nothing."""

_STREAM_SUFFIXES = {".log", ".out", ".err", ".stdout", ".stderr", *RECORD_SUFFIXES}
_TELLS_OF_RUN = ("log", "history", "config", "status")
_Listing = dict[str, list[tuple[Entry, str]]]
"""Files with their kinds, by directory."""
_CHECKPOINT = re.compile(r"checkpoint-(\d+)")
_SAYS_NOTHING = re.compile(
    r"(?i)\d*[-_ ]?(?:nodes?|gpus?|ranks?)[-_ ]?\d*|[\d._-]+|"
    r"(?:logs?|outputs?|out|results?|runs?|exps?|experiments?|slurm)(?:[-_ ]?\d+)?"
)
"""Names of folders that many sweeps have: `1nodes`, `gpus_64`, `logs`, `2026-11-20`."""
_MOST_FOLDERS = 3


def discover(
    entries: Iterable[Entry],
    *,
    is_simulated: Callable[[str], bool],
    named: Collection[str] = (),
    dialects: Sequence[Dialect] = DIALECTS,
) -> pl.DataFrame:
    """Kind, unit, job and sweep of each file.

    What is of one run (`run_tree`) is one unit: the log, configurations and steps that a trainer kept beside it and in
    folders below. Any other log is its own unit, together with files of the same stem (`train.out`, `train.err`). The
    sweep is the directory above run directories, or the one in which logs of several runs lie (`sweep_name`).

    Args:
        entries: the listing.
        is_simulated: whether a directory lies in a sweep that the simulator wrote.
        named: paths that the user gave one by one; they are read as logs whatever their name.
        dialects: the dialects whose sidecars are known by their names.

    Returns:
        FOUND rows, sorted by path.
    """
    kind_of = file_kinds(dialects)
    by_directory = _listing(entries, kind_of, named)
    parts = _parts(by_directory, kind_of)
    if parts:
        by_directory = {
            directory: [(entry, "log" if entry.path in parts else kind) for entry, kind in files]
            for directory, files in by_directory.items()
        }
    log_of = {path: log for path, (log, _) in parts.items()}
    roles = _log_roles(by_directory, log_of, dialects)
    by_directory = _with_configurations(_judge_histories(by_directory, dialects, roles), roles)
    alias_of = aliases(dialects)
    listed = {
        directory: [
            Listed(entry.path, kind, *roles.get(entry.path, ("", "")), alias=alias_of(_name(entry.path)))
            for entry, kind in files
            if kind in _TELLS_OF_RUN
        ]
        for directory, files in by_directory.items()
    }
    place_of = places(listed, cache(partial(marks_run, dialects=dialects)))
    roots = {place.root for place in place_of.values()}
    single = {directory for directory, files in listed.items() if len({file.run for file in files} - {""}) == 1}
    siblings = Counter(map(_parent, single | roots))
    rows: list[tuple[object, ...]] = []
    for directory, files in by_directory.items():
        origin = "simulated" if is_simulated(directory) else "measured"
        for entry, kind in files:
            log = log_of.get(entry.path, entry.path)
            place = place_of.get(entry.path) or (Place(directory) if directory in roots else None)
            run_dir = place.root if place else directory
            # Logs of one run each, side by side, are a sweep, too: `sweep/tp2/run.log`, `sweep/tp4/run.log`.
            is_nested = place is not None or (directory in single and siblings[_parent(directory)] > 1)
            sweep = sweep_name(_parent(run_dir) if is_nested else directory)
            run, own_launch = roles.get(entry.path, (None, ""))
            unit = place.root if place else _lone_unit(log, kind, run)
            launch = place.launch if place else own_launch
            shared = (run_dir, sweep, launch, origin, entry.linked_path, *parts.get(entry.path, (None, None)), None)
            rows.append((entry.path, unit, job_of(_name(log)), kind, entry.bytes, entry.mtime, *shared))
    columns = zip(*rows, strict=True) if rows else ((),) * len(FOUND)
    found = pl.DataFrame(dict(zip(FOUND, columns, strict=True)), schema=FOUND)
    return _with_newest_job(found.unique("path").sort("path"))


def _listing(entries: Iterable[Entry], kind_of: Callable[[str], str], named: Collection[str]) -> _Listing:
    """Files and their kinds by directory, as far as a name on its own tells the kind."""
    by_directory: _Listing = defaultdict(list)
    for entry in entries:
        kind = kind_of(_name(entry.path)) if entry.is_file else "unknown"
        if kind in ("other", "memory") or _name(entry.path).endswith(".json"):
            kind = names.kind_of(entry.path) or kind
        if kind == "other" and entry.path in named:
            kind = "log"
        if entry.is_file and trackers.unit_of(entry.path):
            kind = "tracker"
        by_directory[_parent(entry.path)].append((entry, kind))
    return {folder: _with_results_of_trial(files) for folder, files in by_directory.items()}


def _with_results_of_trial(files: list[tuple[Entry, str]]) -> list[tuple[Entry, str]]:
    """Ray Tune keeps the steps of a trial twice, by two names (ray/tune/logger: json.py, csv.py); alone, the first is
    that of a table of runs as well.
    """
    if not any(_name(entry.path) == "progress.csv" for entry, _ in files):
        return files
    return [(entry, "log" if _name(entry.path) == "result.json" else kind) for entry, kind in files]


def _parts(by_directory: _Listing, kind_of: Callable[[str], str]) -> dict[str, tuple[str, int]]:
    """Path of the log and number of the part, of every file that is a part of a rotated log."""
    found = {}
    for directory, files in by_directory.items():
        names = {_name(entry.path) for entry, kind in files if kind in {"log", "other"}}
        for name, (log, number) in rotated_logs(names, lambda base: kind_of(base) == "log").items():
            found[_in(directory, name)] = (_in(directory, log), number)
    return found


def _in(directory: str, name: str) -> str:
    return f"{directory}/{name}" if directory else name


def _judge_histories(
    by_directory: _Listing, dialects: Sequence[Dialect], roles: Mapping[str, tuple[str, str]]
) -> _Listing:
    """The listing with one directory of step histories per run; other such files get the kind of their name otherwise.

    transformers writes a state into every checkpoint: the newest one is the run's, unless one lies in the directory
    above. In a directory with logs of several runs it is unknown whose history a file is.
    """
    kinds_in = {folder: {kind for _, kind in files} for folder, files in by_directory.items()}
    if not any("history" in kinds for kinds in kinds_in.values()):
        return by_directory
    newest: dict[str, tuple[int, str]] = {}
    for folder, kinds in kinds_in.items():
        number = _CHECKPOINT.fullmatch(_name(folder))
        if number and "history" in kinds:
            newest[_parent(folder)] = max(newest.get(_parent(folder), (-1, "")), (int(number[1]), folder))
    latest = {folder for run, (_, folder) in newest.items() if "history" not in kinds_in.get(run, set())}
    judged: _Listing = {folder: [] for folder in by_directory}
    for folder, files in by_directory.items():
        home = _parent(folder) if folder in latest else folder
        is_old = bool(_CHECKPOINT.fullmatch(_name(folder))) and folder not in latest
        is_shared = len({roles[entry.path][0] for entry, kind in by_directory.get(home, []) if kind == "log"}) > 1
        for entry, kind in files:
            if kind != "history":
                judged[folder].append((entry, kind))
            elif is_old or is_shared:
                judged[folder].append((entry, file_kind(_name(entry.path), dialects, histories=False)))
            else:
                judged.setdefault(home, []).append((entry, kind))
    return judged


def _with_configurations(by_directory: _Listing, roles: Mapping[str, tuple[str, str]]) -> _Listing:
    """The listing; a document of any name is a configuration in the folder of one run's log, or right above it.

    Whether it states anything of a training is known when it is read.
    """
    runs: dict[str, set[str]] = defaultdict(set)
    for folder, files in by_directory.items():
        here = {f"{folder}/{roles[entry.path][0]}" for entry, kind in files if kind == "log"}
        runs[folder] |= here
        runs[_parent(folder)] |= here
    of_one = {folder for folder, logs in runs.items() if len(logs) == 1}
    return {
        folder: [
            (entry, "config" if kind == "other" and may_configure(_name(entry.path), entry.bytes) else kind)
            for entry, kind in files
        ]
        if folder in of_one
        else files
        for folder, files in by_directory.items()
    }


def _log_roles(
    by_directory: _Listing, log_of: Mapping[str, str], dialects: Sequence[Dialect]
) -> dict[str, tuple[str, str]]:
    """Names of the run and launch of each log by its path, as far as those beside it tell them.

    Records of which only the begin will show whether they are of a training belong to the one run beside them.
    """
    roles: dict[str, tuple[str, str]] = {}
    for files in by_directory.values():
        paths = {entry.path: log_of.get(entry.path, entry.path) for entry, kind in files if kind == "log"}
        earlier = _earlier(paths)
        logs = {path: earlier[path][0] if path in earlier else log for path, log in paths.items()}
        stems = {path: _name(_without_table_suffix(_stem(log))) for path, log in logs.items()}
        unsure = {path: stem for path, stem in stems.items() if may_be_data(_name(path), dialects)}
        of_stem = log_roles([stem for path, stem in stems.items() if path not in unsure])
        runs = {run for run, _ in of_stem.values()}
        beside = log_roles(unsure.values()) if len(runs) != 1 else {stem: (min(runs), "") for stem in unsure.values()}
        roles |= {path: beside[stem] if path in unsure else of_stem[stem] for path, stem in stems.items()}
        superseded = {roles[path][0] for path in earlier}
        latest = [path for path in paths if roles[path][0] in superseded and not roles[path][1]]
        roles |= {path: (roles[path][0], LATEST) for path in latest}
        roles |= {path: (roles[path][0], f"earlier {which}") for path, (_, which) in earlier.items()}
    return roles


def _earlier(logs: Mapping[str, str]) -> dict[str, tuple[str, str]]:
    """Of each log that was put aside for another one in its folder: the path of that log, and what tells it apart.

    Args:
        logs: path of the log that a file is, or is a part of, by its path.
    """
    found = {}
    for path, log in logs.items():
        aside = EARLIER.fullmatch(log.rpartition("/")[2].lower()) if path == log else None
        newer = path[: -len(aside["which"]) - 1] if aside else ""
        if aside and newer in logs:
            found[path] = (newer, aside["which"])
    return found


def _with_newest_job(found: pl.DataFrame) -> pl.DataFrame:
    """FOUND rows; a file without a job is of the newest one of its unit's logs."""
    jobs = found.filter(pl.col("kind") == "log").sort(pl.col("job").str.len_chars(), "job")
    newest = jobs.group_by("unit").agg(newest=pl.col("job").last())
    joined = found.join(newest, on="unit", how="left", maintain_order="left")
    is_without = (pl.col("job") == "") & pl.col("newest").is_not_null()
    return joined.with_columns(job=pl.when(is_without).then("newest").otherwise("job")).drop("newest")


def changed(found: pl.DataFrame, ledger: pl.DataFrame, *, versions: dict[str, int]) -> pl.DataFrame:
    """Rows of `found` whose unit has a file that is new, differs in size or time, was read by another version, or
    of which something else is stated.

    So have units that a file has left for another one.

    Args:
        ledger: the `files` table.
        versions: current version by parser name, "" for files that no parser recognised (`parser_versions`).
    """
    current = pl.col("parser").fill_null("").replace_strict(versions, default=None, return_dtype=pl.Int64)
    up_to_date = ledger.filter(current.is_null() | (pl.col("parser_version") == current))
    # A run is read again once something else is stated of it, though its files are as they were.
    same = ["path", "bytes", "mtime", "unit", "stated"]
    known = up_to_date.select(same).with_columns(pl.col("stated").fill_null(""))
    fresh = found.with_columns(pl.col("stated").fill_null("")).join(known, on=same, how="anti")
    # Rows that were read with a dialect file stay when the file is forgotten, though the log may now look different.
    orphans = ledger.filter(pl.col("parser").is_not_null() & current.is_null())
    fresh = fresh.join(orphans.select("path", "bytes", "mtime"), on=["path", "bytes", "mtime"], how="anti")
    moved = ledger.select("path", left="unit").join(found.select("path", "unit"), on="path")
    left = moved.filter(pl.col("left") != pl.col("unit")).select(unit="left")
    units = pl.concat([fresh.select("unit"), left]).unique()
    return found.join(units, on="unit", how="semi", maintain_order="left")


def sweep_name(folder: str) -> str:
    """Name of a sweep by its folder; where that says nothing of the sweep, with the folder above in front.

    >>> sweep_name("/data/tp_scan"), sweep_name("/data/llama8b/1nodes"), sweep_name("/llama8b/64gpus/logs")
    ('tp_scan', 'llama8b/1nodes', 'llama8b/64gpus/logs')
    >>> sweep_name("/logs")
    'logs'
    >>> sweep_name("/zero_study/runs"), sweep_name("/zero_study/exp_2")
    ('zero_study/runs', 'zero_study/exp_2')
    >>> sweep_name("/zero_study.tar.gz"), sweep_name("/zero_study/runs.zip")
    ('zero_study', 'zero_study/runs')
    """
    parts = [without_suffix(part) for part in folder.split("/")]
    for kept in range(1, _MOST_FOLDERS + 1):
        above = parts[-kept - 1] if len(parts) > kept else ""
        if not _SAYS_NOTHING.fullmatch(parts[-kept]) or not above:
            return "/".join(parts[-kept:])
    return "/".join(parts[-_MOST_FOLDERS:])


def _parent(path: str) -> str:
    return path.rsplit("/", 1)[0] if "/" in path else ""


def _name(path: str) -> str:
    return path.rsplit("/", 1)[-1]


def _lone_unit(path: str, kind: str, run: str | None) -> str:
    """Unit of a file outside run directories; the dumps, and the logs, of all ranks are judged together."""
    if run is not None:
        return _in(_parent(path), run)
    if kind == "tracker":
        return trackers.unit_of(path)
    return names.dump_set(path) if kind == "flight_record" else _stem(path)


def _without_table_suffix(path: str) -> str:
    """A table of steps that is read as a log is of the run of its name."""
    return path.removesuffix(next((suffix for suffix in TABLE_SUFFIXES if path.lower().endswith(suffix)), ""))


def _stem(path: str) -> str:
    """Path without log suffixes: `/a/train.out` (or `.log`) and `/a/train.err` are one unit."""
    stem, suffix = posixpath.splitext(path)
    if suffix.lower() in _STREAM_SUFFIXES:
        return stem
    if stream := PBS_STREAM.fullmatch(suffix):
        return f"{stem}.{stream[1]}"
    return path
