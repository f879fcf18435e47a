"""Files of archives in a listing: as if each archive were a folder of its own name."""

from __future__ import annotations

import posixpath
from collections.abc import Iterable, Iterator

from sweepscope.pipeline.ingest.file_kinds import file_kind
from sweepscope.pipeline.io.archives import contents, is_archive, without_suffix
from sweepscope.pipeline.io.files import Entry
from sweepscope.pipeline.io.remote import is_url

_MEDIA = {
    *(".jpg", ".jpeg", ".png", ".webp", ".gif", ".tiff", ".bmp", ".mp4", ".webm", ".avi", ".mov", ".wav", ".flac"),
    *(".mp3", ".ogg", ".pyd", ".cls", ".npy", ".pth"),
}
_SHARE_OF_MEDIA = 0.2
"""Of the files of an archive of training data, such as WebDataset's shards, which have a caption for each picture."""
_OF_DATA = "a part of a data set, with pictures, sounds or arrays: its texts are not read"
_NOTHING = "an archive without a log, a configuration or a table that a parser knows by its name"
_READ = {"log", "history", "tracker", "bench_csv", "scheduler", "nccl", "flight_record", "memory", "statements"}
_SAME_TIME_S = 2.0
"""zip and some file systems keep every second second only."""


def with_members(entries: Iterable[Entry]) -> Iterator[Entry]:
    """A listing with the files of local archives behind it.

    A file that lies unpacked beside the archive, at the same place below and as it was put in, is the unpacked one.
    """
    archives: list[Entry] = []
    known: dict[str, Entry] = {}
    for entry in entries:
        yield entry
        known[entry.path] = entry
        if entry.is_file and not is_url(entry.path) and _is_archive(posixpath.basename(entry.path)):
            archives.append(entry)
    for archive in archives:
        yield from (member for member in _members(archive) if not _lies_beside(member, archive, known))


def _is_archive(name: str) -> bool:
    # The suffix first: of a name that has none of an archive, asking all dialects takes longer than listing the file.
    return is_archive(name.lower()) and file_kind(name) == "archive"


def _members(archive: Entry) -> Iterator[Entry]:
    found = contents(archive.path)
    if _reason_against([member.name for member in found.members]):
        return
    for member in found.members:
        linked = f"{archive.linked_path}/{member.name}" if archive.linked_path else None
        yield Entry(f"{archive.path}/{member.name}", member.bytes, member.mtime, linked_path=linked)


def _lies_beside(member: Entry, archive: Entry, known: dict[str, Entry]) -> bool:
    name = member.path.removeprefix(f"{archive.path}/")
    folders = (posixpath.dirname(archive.path), without_suffix(archive.path))
    there = [known[path] for folder in folders if (path := f"{folder}/{name}") in known]
    return any(one.bytes == member.bytes and abs(one.mtime - member.mtime) <= _SAME_TIME_S for one in there)


def archive_note(path: str) -> dict[str, object]:
    """Columns of the ledger on an archive: whether its files are listed, and what of it is left out."""
    found = contents(path)
    reason = _reason_against([member.name for member in found.members]) if found.members else ""
    if reason:
        return {"status": "skipped", "error": reason}
    error = "; ".join(found.notes) or None
    if found.members:
        return {"status": "parsed", "error": error}
    return {"status": "rejected" if error else "skipped", "error": error or _NOTHING}


def _reason_against(names: list[str]) -> str:
    """Why files of an archive are not listed; "" where they are."""
    suffixes = [posixpath.splitext(name.lower())[1] for name in names]
    if sum(suffix in _MEDIA for suffix in suffixes) > _SHARE_OF_MEDIA * len(names):
        return _OF_DATA
    return "" if any(file_kind(posixpath.basename(name)) in _READ for name in names) else _NOTHING
