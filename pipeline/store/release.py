"""Releases: small files that pin one version of every Delta table. Writing one is the commit point of the lake.

A reader takes the newest release and the versions it names, so it never sees two tables of different age, and a
writer that dies before its release file exists has changed nothing that anyone reads.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from sweepscope.pipeline.errors import StoreError
from sweepscope.pipeline.store.durable_files import write_new

KEPT = 3
"""How many releases stay readable: vacuum removes only what the last ones do not pin."""


@dataclass(frozen=True)
class Release:
    """One consistent state of the lake. `versions` maps table name to Delta version; a table without rows is absent."""

    number: int
    versions: Mapping[str, int]
    created_at: datetime
    batch_ids: tuple[str, ...] = ()


def numbers(folder: Path) -> list[int]:
    """Numbers of the releases in a folder, oldest first."""
    return sorted(int(path.stem) for path in folder.glob("*.json") if path.stem.isdigit())


def path_of(folder: Path, number: int) -> Path:
    """File of one release.

    >>> path_of(Path("releases"), 12).name
    '000012.json'
    """
    return folder / f"{number:06}.json"


def load(folder: Path, number: int) -> Release:
    """Read one release. Raises StoreError when the file is damaged or missing."""
    path = path_of(folder, number)
    try:
        return parsed(path.read_bytes())
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise StoreError(
            f"The release {path} cannot be read ({error}). Move it away to go back to the one before, and ingest again."
        ) from error


def parsed(text: bytes) -> Release:
    """The release in the content of such a file. Raises ValueError, KeyError or TypeError where it is none."""
    content = json.loads(text)
    return Release(
        number=content["number"],
        versions=content["versions"],
        created_at=datetime.fromisoformat(content["created_at"]),
        batch_ids=tuple(content["batch_ids"]),
    )


def latest(folder: Path) -> Release | None:
    """The newest release, or None before the first commit. Raises StoreError when it is damaged."""
    found = numbers(folder)
    return load(folder, found[-1]) if found else None


def kept(folder: Path) -> list[Release]:
    """The releases that must stay readable, oldest first."""
    return [load(folder, number) for number in numbers(folder)[-KEPT:]]


def write(folder: Path, release: Release) -> None:
    """Make a release the newest one, durably. Raises FileExistsError when its number is taken."""
    folder.mkdir(parents=True, exist_ok=True)
    write_new(path_of(folder, release.number), as_text(release))


def as_text(release: Release) -> str:
    """The content of a release's file."""
    content = {
        "number": release.number,
        "created_at": release.created_at.isoformat(),
        "versions": dict(sorted(release.versions.items())),
        "batch_ids": list(release.batch_ids),
    }
    return json.dumps(content, indent=2) + "\n"
