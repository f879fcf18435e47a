"""Host lists as Slurm and Flux print them (src/common/hostlist.c of Slurm)."""

from __future__ import annotations

import re

_MAX_HOSTS = 100_000
_NOTHING = ("", "None assigned", "(null)", "None", "N/A", "Unknown", "n/a")


def hosts(text: str) -> list[str] | None:
    """Host names of a host list, in its order; None where nothing is allocated or a value was cut.

    >>> hosts("r6i4n[1-2,5],gpu01"), hosts("rack[1-2]n[08-09]")
    (['r6i4n1', 'r6i4n2', 'r6i4n5', 'gpu01'], ['rack1n08', 'rack1n09', 'rack2n08', 'rack2n09'])
    """
    text = text.strip()
    if text in _NOTHING or text.count("[") != text.count("]"):
        return None
    names: list[str] = []
    for part in re.findall(r"(?:[^,\[\]]|\[[^\]]*\])+", text):
        expanded = _expanded(part)
        if expanded is None or len(names) + len(expanded) > _MAX_HOSTS:
            return None
        names += expanded
    return names if names and all(re.fullmatch(r"[\w.-]+", name) for name in names) else None


def _expanded(part: str) -> list[str] | None:
    names = [""]
    for piece in re.findall(r"\[[^\]]*\]|[^\[\]]+", part):
        if piece.startswith("["):
            numbers = _numbers(piece[1:-1])
            if numbers is None or len(names) * len(numbers) > _MAX_HOSTS:
                return None
            names = [name + number for name in names for number in numbers]
        else:
            names = [name + piece for name in names]
    return names


def _numbers(text: str) -> list[str] | None:
    numbers: list[str] = []
    for item in text.split(","):
        match = re.fullmatch(r"(\d{1,9})(?:-(\d{1,9}))?", item)
        if not match:
            return None
        first, last = int(match[1]), int(match[2] or match[1])
        if not 0 <= last - first < _MAX_HOSTS:
            return None
        numbers += [str(number).zfill(len(match[1])) for number in range(first, last + 1)]
    return numbers
