"""Versions of the parsers, from their own source: a file is read again when the code that would read it has changed.

A version is a hash over the modules that a parser's rows depend on, so that it changes with the code and no number
has to be raised. It covers the bytes of the files as installed (line ends normalised), comments included: that takes a
few milliseconds per process and depends on nothing else, whereas tokens or syntax trees without comments would take a
hundred times as long and differ between versions of Python.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from importlib.resources import files
from importlib.resources.abc import Traversable

from sweepscope.pipeline.logs.dialect import Dialect
from sweepscope.pipeline.logs.facts import INFERRED
from sweepscope.pipeline.logs.registry import DIALECTS, TABLES
from sweepscope.pipeline.memory.names import PARSERS as MEMORY_PARSERS

_LOGS = ("text", "io/text_encoding.py", "io/log_envelopes.py", "io/terminal_lines.py", "derive", "nccl", "logs")
"""Packages and modules of the pipeline that read every log, whatever its dialect: a log may hold lines of NCCL."""

_OF_SINGLE_DIALECTS = ("logs/dialects/", "logs/declared/", "logs/bundled/", "logs/registry.py")
"""Parts of them that count for the dialects that import them only. One dialect more changes no reading of others."""

_MEMORY, _SCHEDULER, _TABLE = ("text", "memory"), ("text", "scheduler"), ("text",)

_IMPORT = re.compile(r"^ *from sweepscope\.pipeline\.(logs\.\w[\w.]*) import (\([^)]*\)|[^\n]*)", re.MULTILINE)

_VERSION_BYTES = 6
"""Whole numbers of 48 bits are exact in a DOUBLE, too."""


def current_versions(dialects: Sequence[Dialect] = DIALECTS) -> dict[str, int]:
    """Current version by the name that the ledger keeps; "" stands for files that no parser knew.

    The latter changes with every parser, a new one included: any of them may know such a file. The version of a dialect
    changes with its own modules, with all that reads logs whatever their dialect, and with the claims of declared
    dialects to files of others.
    """
    claims = max((dialect.claims for dialect in dialects), default=0)
    logs, tables = _of_logs(), _hash(_sources(_TABLE))
    versions = {
        "nccl": _hash({}, logs, claims),
        **{d.name: _hash(_modules_of(d.module), logs, claims, d.revision) for d in dialects},
        **{table.name: _hash(_modules_of(table.module), tables) for table in TABLES},
        **dict.fromkeys(MEMORY_PARSERS, _hash(_sources(_MEMORY))),
        "scheduler": _hash(_sources(_SCHEDULER)),
    }
    # What is inferred rests on the synonyms, and on no dialect knowing the file: any new one may.
    of_all = _hash({}, *sorted(versions.items()))
    return {"": of_all, INFERRED: _hash(_sources(("logs/declared",)), logs, of_all), **versions}


def _of_logs() -> int:
    """Hash of the modules that read every log: once, not with those of each dialect."""
    sources = _sources(_LOGS)
    return _hash({path: data for path, data in sources.items() if not path.startswith(_OF_SINGLE_DIALECTS)})


def _hash(sources: Mapping[str, str], *further: object) -> int:
    """A whole number from 1 on."""
    data = repr((sorted(sources.items()), further)).encode()
    return int.from_bytes(hashlib.sha256(data).digest()[:_VERSION_BYTES]) | 1


def _modules_of(module: str) -> dict[str, str]:
    """`_sources` of a dialect's module and of those for single dialects that it imports, directly or not."""
    sources = _pipeline()
    found: dict[str, str] = {}
    waiting = [module.removeprefix("sweepscope.pipeline.")]
    while waiting:
        path = f"{waiting.pop().replace('.', '/')}.py"
        if path in sources and path not in found and path.startswith(_OF_SINGLE_DIALECTS[:2]):
            found[path], text = sources[path]
            waiting += _imports(text)
    return found


def _sources(parts: tuple[str, ...]) -> dict[str, str]:
    """Hash of each module of some packages, by its path below the pipeline."""
    return {path: hashed for path, (hashed, _) in _pipeline().items() if path.startswith(parts)}


@cache
def _imports(text: str) -> tuple[str, ...]:
    """Modules, or names in them, that a module with this text imports of `pipeline.logs`."""
    names = []
    for package, imported in _IMPORT.findall(text):
        names += [package, *(f"{package}.{name}" for name in re.findall(r"\w+", imported))]
    return tuple(names)


@cache
def _pipeline() -> dict[str, tuple[str, str]]:
    """Hash and text of each module that counts, by its path below the pipeline."""
    root = files("sweepscope.pipeline")
    parts = dict.fromkeys((*_LOGS, *_MEMORY, *_SCHEDULER))
    found = {path: file.read_bytes().replace(b"\r\n", b"\n") for part in parts for path, file in _files(root, part)}
    return {path: (hashlib.sha256(data).hexdigest(), data.decode("utf-8")) for path, data in found.items()}


def _files(root: Traversable, path: str) -> Iterator[tuple[str, Traversable]]:
    here = root.joinpath(path)
    if path.endswith(".py"):
        yield path, here
    elif here.is_dir():
        for child in here.iterdir():
            yield from _files(root, f"{path}/{child.name}")
