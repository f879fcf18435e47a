"""A folder of an object store, and the copy of it on this machine: list, create, upload, download, remove."""

from __future__ import annotations

import json
import logging
import random
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar
from uuid import uuid4

from sweepscope.pipeline.errors import InputError, StoreError
from sweepscope.pipeline.io import remote
from sweepscope.pipeline.io.event_log import event

_LOG = logging.getLogger(__name__)

Result = TypeVar("Result")

_IDENTITY = "lake.json"

_ATTEMPTS = 30
_PAUSE_S = 0.5
_MAX_PAUSE_S = 5.0
"""Those who share a folder wait a while, each another one, before they try again: a commit takes a second or two."""


class OvertakenError(StoreError):
    """Somebody else has written to the lake since the commit was prepared."""


def undisturbed(attempt: Callable[[], Result]) -> Result:
    """What `attempt` gives once nobody was faster. Raises as it does."""
    for number in range(1, _ATTEMPTS):
        try:
            return attempt()
        except OvertakenError as error:
            event(_LOG, logging.INFO, "overtaken", attempt=number, reason=error)
            time.sleep(random.uniform(0, min(number * _PAUSE_S, _MAX_PAUSE_S)))  # noqa: S311 -- no secret
    return attempt()


@dataclass
class ObjectFolder:
    """The objects below `url`, and their copies in `folder`. Names are paths below either."""

    url: str
    folder: Path
    _system: Any = field(init=False, default=None)
    _root: str = field(init=False, default="")

    @contextmanager
    def reaching(self, doing: str) -> Iterator[None]:
        """While the block uses the object store. Raises StoreError where that cannot be reached, or does not answer."""
        try:
            if self._system is None:
                self._system, self._root = remote.file_system(self.url)
            with remote.as_os_error():
                yield
        except InputError as error:
            raise StoreError(str(error)) from error
        except OSError as error:
            raise StoreError(
                f"Cannot {doing} the lake at {self.url}: {error}. Check the URL, the endpoint and the credentials. "
                "What was there before is untouched."
            ) from error

    def listed(self, below: str = "") -> dict[str, Mapping[str, Any]]:
        """Every object by its name, listed anew, with what the store says of it."""
        self._system.invalidate_cache()
        try:
            found = self._system.find(f"{self._root}/{below}".rstrip("/"), detail=True)
        except FileNotFoundError:
            return {}
        return {name.removeprefix(self._root).lstrip("/"): info for name, info in found.items()}

    def identity(self) -> str:
        """Which lake this is; made where there is none yet, after a look at whether it can be shared safely."""
        path = f"{self._root}/{_IDENTITY}"
        self._system.invalidate_cache()
        if not self._system.exists(path):
            try:
                self.create(_IDENTITY, json.dumps({"lake": uuid4().hex}).encode())
            except OvertakenError:  # by another home, a moment ago
                pass
            else:
                self._check_conditions()
        return str(json.loads(self._system.cat_file(path))["lake"])

    def _check_conditions(self) -> None:
        """Raise StoreError for an object store that overwrites where it was asked to create."""
        path = f"{self._root}/{_IDENTITY}"
        try:
            self._system.pipe_file(f"{path}.probe", b"1", mode="create")
            self._system.pipe_file(f"{path}.probe", b"2", mode="create")
        except FileExistsError:
            self._system.rm_file(f"{path}.probe")
            return
        self._system.rm([f"{path}.probe", path])
        raise StoreError(
            f"{self.url} overwrites objects that are there already (no If-None-Match), so that two who write at a time "
            "would lose rows. Keep the lake in the home, or on an object store that has conditional writes."
        )

    def create(self, name: str, content: bytes) -> None:
        """Create an object. Raises OvertakenError where there is one with other content."""
        try:
            self._system.pipe_file(f"{self._root}/{name}", content, mode="create")
        except FileExistsError as error:
            # Ours, if the answer to a first try was lost.
            self._system.invalidate_cache()  # of listings, in which it is not
            if self._system.cat_file(f"{self._root}/{name}") != content:
                raise OvertakenError(f"{self.url}/{name} was written by somebody else.") from error

    def content(self, name: str) -> bytes:
        """What an object holds."""
        found: bytes = self._system.cat_file(f"{self._root}/{name}")
        return found

    def upload(self, names: Iterable[str]) -> None:
        """Put files of the copy in place of the objects of their names."""
        names = sorted(names)
        if names:
            self._system.put([str(self.folder / name) for name in names], [f"{self._root}/{name}" for name in names])

    def download(self, names: Iterable[str]) -> None:
        """Bring objects to the copy, which have no file there yet; a file is whole or is not there."""
        names = [name for name in names if not (self.folder / name).exists()]
        if not names:
            return
        paths = [self.folder / name for name in names]
        for path in paths:
            path.parent.mkdir(parents=True, exist_ok=True)
        unfinished = [path.with_name(f".{path.name}.part") for path in paths]
        self._system.get([f"{self._root}/{name}" for name in names], [str(path) for path in unfinished])
        for part, path in zip(unfinished, paths, strict=True):
            part.replace(path)

    def remove(self, names: Iterable[str]) -> None:
        """Remove objects; their copies stay."""
        if paths := [f"{self._root}/{name}" for name in names]:
            self._system.rm(paths)
