"""The dialect files that a home remembers: each is given once and used by every later ingest, scheduled ones too.

A file is copied into the home under its dialect's name. An index numbers its revisions, because the ledger's parser
versions are whole numbers that grow: a file whose content changed reads its logs again, and one that is new or whose
claims (signature, file names) changed makes every file new, since any may match now. Forgetting a dialect changes no
number: rows that were read with it stay.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

from sweepscope.pipeline.errors import InputError, UsageError
from sweepscope.pipeline.ingest.parser_versions import current_versions
from sweepscope.pipeline.logs import bundled
from sweepscope.pipeline.logs.declared.compile import compile_document
from sweepscope.pipeline.logs.declared.document import read_document
from sweepscope.pipeline.logs.declared.rules import Document
from sweepscope.pipeline.logs.dialect import Dialect
from sweepscope.pipeline.logs.registry import DIALECTS, IN_CODE
from sweepscope.pipeline.store.durable_files import reading, storing, write_over
from sweepscope.pipeline.store.home import Home
from sweepscope.pipeline.store.lock import exclusive

_MAX_READ_BYTES = 1 << 20


@dataclass(frozen=True)
class Remembered:
    """One dialect file of a home; `path` is the home's copy, `text` its content, `given` where it came from."""

    name: str
    path: Path
    text: str
    sha256: str
    revision: int
    given: str
    document: Document


@dataclass(frozen=True)
class Declared:
    """What other processes, on other machines perhaps, make a home's dialects of: its files' texts with revisions."""

    texts: tuple[tuple[str, int], ...] = ()
    claims: int = 0

    @cached_property
    def dialects(self) -> Sequence[Dialect]:
        """The dialects of the home, and the built-in ones but those whose name it has given to a file of its own."""
        documents = [(read_text(text, "a dialect file of the home"), revision) for text, revision in self.texts]
        declared = [compile_document(one, revision=revision, claims=self.claims) for one, revision in documents]
        names = {document.name for document, _ in documents}
        others = [replace(dialect, claims=self.claims) for dialect in DIALECTS if dialect.name not in names]
        return (*declared, *others) if self.claims or declared else DIALECTS

    def __reduce__(self) -> tuple[Any, ...]:
        """Travels without the compiled dialects, which hold functions."""
        return Declared, (self.texts, self.claims)


@dataclass(frozen=True)
class InForce:
    """The dialects that an ingest reads with, those of the home before the built-in ones.

    `files` names path and content hash of each dialect file, for the configuration of a run.
    """

    declared: Declared = Declared()
    remembered: tuple[Remembered, ...] = ()

    @property
    def dialects(self) -> Sequence[Dialect]:
        """All of them."""
        return self.declared.dialects

    @property
    def files(self) -> dict[str, str]:
        """Path to content hash of each dialect file."""
        return {str(file.path): file.sha256 for file in self.remembered}


def read_file(path: str) -> tuple[str, Document]:
    """Text and rules of a dialect file. Raises UsageError naming file, line and remedy."""
    try:
        with Path(path).expanduser().open("rb") as file:
            data = file.read(_MAX_READ_BYTES + 1)
    except OSError as error:
        remedy = "`sweepscope dialect example` prints one to start from"
        raise UsageError(f"The dialect file {path} cannot be read: {error.strerror}. {remedy}.") from error
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise UsageError(f"{path} is not text in UTF-8. A dialect file is TOML, saved as UTF-8.") from error
    return text, read_text(text, path)


def read_text(text: str, origin: str) -> Document:
    """Rules of the text of a dialect file. Raises UsageError naming `origin`, line and remedy."""
    reserved = current_versions().keys() - set(bundled.NAMES)
    return read_document(text, origin, reserved=reserved, others=IN_CODE)


def remember(home: Home, paths: Sequence[str]) -> None:
    """Keep dialect files for this and every later ingest into the home; a known name is replaced.

    Raises UsageError for a file that is not a dialect file, or two of the same name; StoreError.
    """
    read = [(path, *read_file(path)) for path in paths]
    names = [document.name for _, _, document in read]
    if twice := {name for name in names if names.count(name) > 1}:
        raise UsageError(f"Two dialect files are called {min(twice)}. Give each a name of its own.")
    if read:
        _keep(home, [(str(Path(path).expanduser().absolute()), text, document) for path, text, document in read])


def remember_text(home: Home, text: str, *, given: str, replaces: str | None = None) -> Path:
    """Keep the text of a dialect file as `remember` does, and return the home's copy of it.

    Args:
        home: which reads with it from now on.
        text: of the file.
        given: where it came from, in words.
        replaces: name of the remembered file that it is a new version of; another one is not overwritten.

    Raises:
        UsageError: it is no dialect file, or another file has its name.
        StoreError: the home cannot be written to.
    """
    document = read_text(text, given)
    if document.name != replaces and document.name in {one.name for one in remembered(home)}:
        raise UsageError(f"The home has a dialect file called {document.name!r}. Give this one a name of its own.")
    _keep(home, [(given, text, document)])
    return home.dialects / f"{document.name}.toml"


def _keep(home: Home, read: Sequence[tuple[str, str, Document]]) -> None:
    """Put texts of dialect files into the home and its index; each with where it was given from."""
    with exclusive(home.dialects / "index.lock", "remembering a dialect file"):
        index = _index(home)
        for given, text, document in read:
            with storing(home.dialects, "keep a dialect file in"):
                write_over(home.dialects / f"{document.name}.toml", text)
            entry = index["dialects"].setdefault(document.name, {"revision": 0, "sha256": "", "claims": ""})
            entry.update(given=given, is_in_force=True)
        _renumber(home, index)


def forget(home: Home, name: str) -> None:
    """Take a dialect out of force. What it has read stays. Raises UsageError when the home knows none of that name."""
    with exclusive(home.dialects / "index.lock", "forgetting a dialect file"):
        index = _index(home)
        entry = index["dialects"].get(name)
        if not entry or not entry["is_in_force"]:
            known = ", ".join(_names(index)) or "none"
            raise UsageError(f"No dialect file called {name!r} is remembered. There are: {known}.")
        entry.update(is_in_force=False, claims="")
        with storing(home.dialects, "forget a dialect file in"):
            (home.dialects / f"{name}.toml").unlink(missing_ok=True)
        _save(home, index)


def in_force(home: Home, expected: Mapping[str, str] | None = None) -> InForce:
    """The dialects of a home, read anew.

    Args:
        expected: path and content hash of the dialect files that a run was asked to read with; None: as they are.

    Raises:
        UsageError: a remembered file is missing, or was edited and is no dialect file any more.
        InputError: the files are not those that were expected.
    """
    _adopt(home)
    if not (home.dialects / "index.json").exists():
        found, claims = [], 0
    else:
        index = _index(home)
        found = _remembered(home, index)
        if any(_has_changed(file, index) for file in found):
            with exclusive(home.dialects / "index.lock", "numbering an edited dialect file"):
                index = _index(home)
                _renumber(home, index)
            found = _remembered(home, index)
        claims = index["claims"]
    result = InForce(Declared(tuple((one.text, one.revision) for one in found), claims), tuple(found))
    if expected is not None and dict(expected) != result.files:
        raise InputError("The dialect files have changed since this run was asked for. Ingest again to read with them.")
    return result


def _adopt(home: Home) -> None:
    """Remember files that somebody has put into the home's folder by hand."""
    names = _names(_index(home)) if home.dialects.is_dir() else []
    found = [path for path in sorted(home.dialects.glob("[!.]*.toml")) if path.stem not in names]
    for path in found:
        text, document = read_file(str(path))
        if document.name != path.stem:
            raise UsageError(f"{path} calls itself {document.name!r}. Rename it to {document.name}.toml, or remove it.")
        _keep(home, [(str(path), text, document)])


def remembered(home: Home) -> list[Remembered]:
    """The dialect files of a home, changing nothing. Raises UsageError as `in_force`."""
    return _remembered(home, _index(home)) if (home.dialects / "index.json").exists() else []


def _remembered(home: Home, index: Mapping[str, Any]) -> list[Remembered]:
    found = []
    for name in _names(index):
        path, entry = home.dialects / f"{name}.toml", index["dialects"][name]
        if not path.exists():
            raise UsageError(
                f"{path} is gone. Give the file again with --dialect, or `sweepscope dialect forget {name}`."
            )
        text, document = read_file(str(path))
        if document.name != name:
            raise UsageError(f"{path} now calls itself {document.name!r}. Give it as a file of its own with --dialect.")
        found.append(Remembered(name, path, text, _hash(text), entry["revision"], entry["given"], document))
    return found


def _renumber(home: Home, index: dict[str, Any]) -> None:
    """Bring the index up to the files: a higher revision for changed content, a higher claim for changed claims."""
    has_claims = False
    for one in _remembered(home, index):
        entry, claims = index["dialects"][one.name], _claims(one.document)
        if entry["sha256"] != one.sha256:
            entry.update(sha256=one.sha256, revision=entry["revision"] + 1)
        if entry["claims"] != claims:
            entry["claims"], has_claims = claims, True
    index["claims"] += has_claims
    _save(home, index)


def _has_changed(one: Remembered, index: Mapping[str, Any]) -> bool:
    return bool(index["dialects"][one.name]["sha256"] != one.sha256)


def _claims(document: Document) -> str:
    """Hash of what makes a file take logs from other dialects; "" where nothing does."""
    if not (document.signature or document.logs or document.files):
        return ""
    return _hash(repr((document.signature, document.logs, [(file.pattern, file.requires) for file in document.files])))


def _hash(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


def _names(index: Mapping[str, Any]) -> list[str]:
    return sorted(name for name, entry in index["dialects"].items() if entry["is_in_force"])


def _index(home: Home) -> dict[str, Any]:
    path = home.dialects / "index.json"
    if not path.exists():
        return {"claims": 0, "dialects": {}}
    with reading(path, ValueError):
        index: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
        if not isinstance(index.get("dialects"), dict) or not isinstance(index.get("claims"), int):
            raise ValueError("not an index of dialect files")
    return index


def _save(home: Home, index: Mapping[str, Any]) -> None:
    with storing(home.dialects, "number the dialect files of"):
        write_over(home.dialects / "index.json", json.dumps(index, indent=2))
