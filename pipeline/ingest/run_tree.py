"""Which files of a tree of folders are of one run, from their paths and kinds alone.

A folder that holds the log of one run is that run's. What lies below it and has no log is of that run too, as trainers
write it there: `out/trainer_state.json`, `lightning_logs/version_0/metrics.csv`, `out/config.json`. So are logs in
folders of its ranks, its attempts and its outputs. Folders side by side that hold the same files are runs of their own,
whatever lies above them. Whether two files of a run really tell of the same steps is decided from their values, by
`pipeline.logs.runs.readings`.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field

from sweepscope.pipeline.ingest.folder_roles import is_attempt, is_part_of_run, ranks

_DEEPEST_CONFIG = 2
"""Levels below a run at which a configuration in folders of any name still describes it."""

_MANY = 50
"""More folders than these with the same files are a sweep, whatever their names."""


@dataclass(frozen=True)
class Listed:
    """A file that may tell of a run: `kind` is log, history, config or status; logs have a `run` and a `launch`.

    `alias` replaces the name of a file whose own differs from run to run, so that those of several runs are alike.
    """

    path: str
    kind: str
    run: str = ""
    launch: str = ""
    alias: str = ""

    @property
    def name(self) -> str:
        """The name that files of other runs share with it."""
        return self.alias or self.path.rpartition("/")[2]


@dataclass(frozen=True)
class Place:
    """Where a file belongs: its run's folder, and the folder below, if any, that tells its attempt from others."""

    root: str
    launch: str = ""


@dataclass
class _Piece:
    """Files below `root` that are of one run as far as their folders tell; `launches` has each of them."""

    root: str
    launches: dict[str, str] = field(default_factory=dict)
    has_log: bool = False
    histories: set[str] = field(default_factory=set)
    configs: set[str] = field(default_factory=set)

    def path_from(self, folder: str) -> str:
        """`root` relative to a folder above it."""
        return self.root[len(folder) :].removeprefix("/")

    def add(self, other: _Piece, prefix: str = "") -> None:
        """Add the files of a piece; those of its launches lie in the folder `prefix`."""
        self.launches |= {path: _joined(prefix, launch) for path, launch in other.launches.items()}
        self.has_log |= other.has_log
        self.histories |= other.histories
        self.configs |= other.configs

    @property
    def is_joined(self) -> bool:
        """Whether files of several kinds or folders are of this run; a log without any stands for itself."""
        folders = {_parent(path) for path in self.launches}
        return bool(self.histories) or (self.has_log and (bool(self.configs) or len(folders) > 1))


def places(files: Mapping[str, Collection[Listed]], marks: Callable[[str], bool]) -> dict[str, Place]:
    """Place of each file that is of the same run as other files, by path. Files that stand alone are left out.

    Args:
        files: by folder.
        marks: whether a configuration of that name marks its folder as one run's, however many logs lie there.
    """
    waiting: dict[str, list[_Piece]] = defaultdict(list)
    done: list[_Piece] = []
    folders = {above for folder, listed in files.items() if listed for above in _with_parents(folder)}
    for folder in sorted(folders, key=lambda folder: (-folder.count("/"), folder)):
        below = _with_ranks_joined(folder, waiting.pop(folder, []))
        own = _own(folder, files.get(folder, ()), below, marks)
        closed, still_open = _join(folder, own, below)
        done += closed
        if folder:
            waiting[_parent(folder)] += still_open
        else:
            done += still_open
    return {
        path: Place(piece.root, launch) for piece in done if piece.is_joined for path, launch in piece.launches.items()
    }


def _own(
    folder: str, listed: Collection[Listed], below: Collection[_Piece], marks: Callable[[str], bool]
) -> list[_Piece]:
    """Pieces of the files right in a folder: one, or one for each log where these are of several runs.

    A log alone, beside a folder of its name and nothing else, is one of several that are named so.
    """
    runs = {file.run for file in listed if file.kind == "log"}
    beside = [file for file in listed if file.kind != "log"]
    is_marked = any(marks(file.name) for file in beside if file.kind != "history")
    is_named = bool(below) and not beside and {_first(piece.path_from(folder)) for piece in below} == runs
    if (len(runs) < 2 or is_marked) and not is_named:
        return [_piece(folder, listed)] if listed else []
    return [_piece(f"{folder}/{run}", [file for file in listed if file.run == run]) for run in sorted(runs)]


def _piece(root: str, listed: Iterable[Listed]) -> _Piece:
    piece = _Piece(root)
    for file in listed:
        piece.launches[file.path] = file.launch
        piece.has_log |= file.kind == "log"
        if file.kind == "history":
            piece.histories.add(file.name)
        elif file.kind != "log":
            piece.configs.add(file.name)
    return piece


def _with_ranks_joined(folder: str, pieces: list[_Piece]) -> list[_Piece]:
    """The pieces below a folder; one for all folders of ranks or attempts in it."""
    firsts = {_first(piece.path_from(folder)) for piece in pieces}
    of_ranks = ranks(firsts, of_attempt=is_attempt(_name(folder)))
    joined, others = _Piece(folder), []
    for piece in pieces:
        first, _, rest = piece.path_from(folder).partition("/")
        if is_part_of_run(rest) and (first in of_ranks or (is_attempt(first) and piece.has_log)):
            joined.add(piece, rest if first in of_ranks else _joined(first, rest))
        else:
            others.append(piece)
    return [joined, *others] if joined.launches else others


def _join(folder: str, own: list[_Piece], below: list[_Piece]) -> tuple[list[_Piece], list[_Piece]]:
    """Pieces below a folder, and its own, joined as far as they are of one run: whole ones, and others."""
    if own and own[0].root != folder:
        return _join_by_name(folder, own, below), []
    logs = [piece for piece in below if piece.has_log]
    inner = [piece for piece in logs if is_part_of_run(piece.path_from(folder))]
    outer = [piece for piece in logs if not is_part_of_run(piece.path_from(folder))]
    beside = [piece for piece in below if not piece.has_log]
    parts = list(_parts(folder, beside, outer))
    others = _without(beside, parts)
    if own and own[0].has_log:
        return [*outer, *others], [_united(folder, [*own, *inner, *parts])]
    if len(logs) > 1:
        return [*own, *logs, *beside], []
    if inner:
        return others, [_united(folder, [*inner, *own, *parts])] if own or parts else inner
    if not own:
        return outer, beside
    near = list(_of_one_history(folder, own[0], parts))
    return outer, [_united(folder, [*own, *near]), *_without(beside, near)]


def _of_one_history(folder: str, own: _Piece, parts: list[_Piece]) -> Iterator[_Piece]:
    """Those of the parts that are of the same run as the files of a folder without a log; none where it is unclear."""
    near = [part for part in parts if _is_near(part.path_from(folder))]
    names = [name for piece in (own, *near) for name in piece.histories]
    if names and len(set(names)) == len(names):
        yield from near


def _is_near(path: str) -> bool:
    return is_part_of_run(path) or path.count("/") < _DEEPEST_CONFIG


def _without(pieces: list[_Piece], others: list[_Piece]) -> list[_Piece]:
    gone = {id(piece) for piece in others}
    return [piece for piece in pieces if id(piece) not in gone]


def _united(folder: str, pieces: Iterable[_Piece]) -> _Piece:
    whole = _Piece(folder)
    for piece in pieces:
        whole.add(piece, piece.path_from(folder))
    return whole


def _join_by_name(folder: str, own: list[_Piece], below: list[_Piece]) -> list[_Piece]:
    """Logs of several runs in one folder, each with the pieces in the folder of the same name."""
    by_name = {_name(piece.root): piece for piece in own}
    others = []
    for piece in below:
        first, _, rest = piece.path_from(folder).partition("/")
        if first in by_name and (is_part_of_run(rest) or not piece.has_log):
            by_name[first].add(piece, rest)
        else:
            others.append(piece)
    return [*own, *others]


def _parts(folder: str, beside: list[_Piece], outer: list[_Piece]) -> Iterator[_Piece]:
    """Pieces without a log that are of the run of a folder above: no folder beside them holds files of the same names.

    Args:
        folder: the one above.
        beside: pieces without a log below it.
        outer: runs of their own below it.
    """
    branches: dict[str, set[str]] = defaultdict(set)
    for piece in beside:
        for name in piece.histories or piece.configs:
            branches[name].add(_branch(piece.path_from(folder)))
    inner = [piece for piece in beside if not _branch(piece.path_from(folder))]
    many = {name for name in branches if sum(name in piece.histories for piece in inner) > _MANY}
    taken = {_first(piece.path_from(folder)) for piece in outer}
    for piece in beside:
        path = piece.path_from(folder)
        branch = _branch(path)
        if not branch:
            is_part = not piece.histories & many
        else:
            is_only = all(len(branches[name] - {""}) == 1 for name in piece.histories or piece.configs)
            is_part = is_only and _first(path) not in taken and (bool(piece.histories) or _is_near(path))
        if is_part:
            yield piece


def _branch(path: str) -> str:
    """A relative path as far as its names may be those of runs.

    >>> _branch("exp_a/lightning_logs/version_0"), _branch("lightning_logs/version_0")
    ('exp_a', '')
    """
    names = path.split("/") if path else []
    while names and is_part_of_run(names[-1]):
        names.pop()
    return "/".join(names)


def _first(path: str) -> str:
    return path.partition("/")[0]


def _joined(folder: str, below: str) -> str:
    return f"{folder}/{below}" if folder and below else folder or below


def _with_parents(folder: str) -> Iterator[str]:
    yield folder
    while folder:
        folder = _parent(folder)
        yield folder


def _parent(path: str) -> str:
    return path.rpartition("/")[0]


def _name(path: str) -> str:
    return path.rpartition("/")[2]
