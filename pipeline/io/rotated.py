"""Rotated logs: which names are parts of one log, and their bytes as one stream.

`train.log.2.gz`, `train.log.1`, `train.log` (logrotate, Python's handlers, savelog) are one log, oldest part first; so
are `train.log-20250501.gz` and `train.log.2025-05-01`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass, field

from sweepscope.pipeline.io.content import Content
from sweepscope.pipeline.io.reader import Reader

_COMPRESSED = re.compile(r"\.(?:gz|zst)$")
_NUMBERED = re.compile(r"(.+)\.(\d{1,3})")
_DATED = re.compile(r"(.+?)[-_.](20\d\d-?\d\d-?\d\d(?:[-_T.]?\d\d(?:[-:_]?\d\d){0,2})?)")


def rotation(name: str) -> tuple[str, tuple[int, int, str]]:
    """Name of the log that a file may be a part of, and what sorts its parts; a log that is written to comes last.

    >>> rotation("train.log.2.gz"), rotation("train.log-20250501"), rotation("train.log")
    (('train.log', (1, -2, '')), ('train.log', (0, 0, '20250501')), ('train.log', (2, 0, '')))
    """
    bare = _COMPRESSED.sub("", name)
    if found := _NUMBERED.fullmatch(bare):
        return found[1], (1, -int(found[2]), "")
    if found := _DATED.fullmatch(bare):
        return found[1], (0, 0, re.sub(r"\D", "", found[2]))
    return name, (2, 0, "")


def rotated_logs(names: Collection[str], is_log: Callable[[str], bool]) -> dict[str, tuple[str, int]]:
    """Files of a directory that are parts of rotated logs: name of the log, and number of the part from 1.

    A number alone may also be that of a rank: parts stand beside the log itself, or one of them is compressed.

    Args:
        names: of all files of the directory.
        is_log: whether a name is that of a log.

    >>> rotated_logs({"a.log", "a.log.1", "a.log.2.gz", "b.log.1", "c.log.0", "c.log"}, lambda name: ".log" in name)
    {'a.log.2.gz': ('a.log', 1), 'a.log.1': ('a.log', 2), 'a.log': ('a.log', 3)}
    """
    parts: dict[str, list[tuple[tuple[int, int, str], str]]] = {}
    for name in names:
        base, order = rotation(name)
        if order[0] < 2:
            parts.setdefault(base, []).append((order, name))
    found: dict[str, tuple[str, int]] = {}
    for base, ordered in parts.items():
        if not is_log(base) or any(order[:2] == (1, 0) for order, _ in ordered):
            continue
        if base in names or (len(ordered) > 1 and any(_COMPRESSED.search(name) for _, name in ordered)):
            whole = [*(name for _, name in sorted(ordered)), *([base] if base in names else [])]
            found |= {name: (base, number) for number, name in enumerate(whole, 1)}
    return found


@dataclass
class RotatedReader(Reader):
    """Chunks of the parts of one log, one after the other. `path` is that of the log.

    Attributes:
        parts: readers of the parts, oldest first.
        first_lines: number in the log of the first line of each part that was begun.
    """

    parts: list[Reader] = field(default_factory=list)
    first_lines: list[int] = field(default_factory=list)

    @property
    def position(self) -> int:
        """Bytes read of all parts."""
        return sum(part.position for part in self.parts)

    @property
    def bytes_read(self) -> int:
        """Bytes read from the disk, of all parts."""
        return sum(part.bytes_read for part in self.parts)

    @property
    def unpacked_bytes(self) -> int:
        """Bytes that have been read of all parts, as many as they are unpacked."""
        return sum(part.unpacked_bytes for part in self.parts)

    @property
    def content(self) -> Content | None:
        """None: each part has one."""
        return None

    def chunks(self) -> Iterator[bytes]:
        """As `Reader.chunks`. NULs at the beginning of a part are left out: they are where copied bytes were."""
        self.is_compressed = True  # one cannot read on in the middle
        line = 1
        for part in self.parts:
            self.first_lines.append(line)
            is_begun = False
            for chunk in part.chunks():
                text = chunk if is_begun else chunk.lstrip(b"\0")
                if text:
                    is_begun = True
                    line += text.count(b"\n")
                    yield text
            if part.damage:
                self.cut, self.damage = part.cut, f"{part.path}: {part.damage}"
