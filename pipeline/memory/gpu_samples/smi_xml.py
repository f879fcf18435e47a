"""Values in the XML of `nvidia-smi -q -x`, of one document or of many in a row (`-l`), with other lines between them.

Read with expat, event by event: it knows the line of each element, a document that is cut off gives what it has, and
memory stays bounded. No entity is ever expanded: the prolog of a document, the only place where entities can be
declared, is not given to the parser, and references to other entities than XML's five are escaped.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import NamedTuple
from xml.parsers import expat  # entities are not expanded, see above

from sweepscope.pipeline.memory.gpu_samples.units import MAX_LINE_CHARS, RAW_LIMIT, Rejects

TOP, GPU, PROCESSES = "top", "gpu", "processes"

_ROOT = "nvidia_smi_log"
_BOUNDARY = re.compile(rf"(?=<\?xml |<!DOCTYPE |<{_ROOT}[ >])")
_AMPERSAND = re.compile(r"&(?!(?:amp|lt|gt|quot|apos|#\d{1,7}|#x[0-9a-fA-F]{1,6});)")
_MAX_DEPTH = 12


class Value(NamedTuple):
    """A line or element with a text. `section` is "" directly below a GPU, TOP above all GPUs."""

    line_no: int
    section: str
    name: str
    text: str


def xml_values(lines: Sequence[str], rejects: Rejects) -> Iterator[Value]:
    """Values of every document, in order; a GPU is a value of section TOP itself.

    Args:
        lines: the text; documents begin anywhere in it.
        rejects: takes one row per document that is cut off or damaged.
    """
    document: _Document | None = None
    for line_no, line in enumerate(lines, start=1):
        for part in filter(None, _BOUNDARY.split(f"{line}\n")):
            if _BOUNDARY.match(part):
                if document:
                    yield from document.finish(rejects)
                document = _Document(line_no) if part.startswith(f"<{_ROOT}") else None
            if document:
                yield from document.feed(part)
    if document:
        yield from document.finish(rejects)


class _Document:
    """One document, fed line by line from its root element on."""

    def __init__(self, first_line: int) -> None:
        self._first_line, self._last = first_line, ""
        self._path: list[str] = []
        self._leaf: tuple[int, str] | None = None  # line and text of the innermost element, while it has no child
        self._values: list[Value] = []
        self._is_over = False
        self._error: tuple[int, str] | None = None
        self._parser = expat.ParserCreate()
        self._parser.StartElementHandler = self._start
        self._parser.EndElementHandler = self._end
        self._parser.CharacterDataHandler = self._text

    def feed(self, line: str) -> list[Value]:
        """Values that are known with this line."""
        return self._parse(_AMPERSAND.sub("&amp;", line), is_final=False)

    def finish(self, rejects: Rejects) -> list[Value]:
        """The last values; a document without its end is added to `rejects`."""
        values = self._parse("", is_final=True)
        if self._error:
            line_no, raw = self._error
            rejects.append((line_no, "XML that is cut off or damaged", raw))
        return values

    def _parse(self, text: str, *, is_final: bool) -> list[Value]:
        self._last = text or self._last
        if not (self._is_over or self._error):
            try:
                self._parser.Parse(text, is_final)
            except expat.ExpatError:
                if not self._is_over:  # other lines may follow the root element
                    self._error = self._line_no(), self._last.rstrip("\n")[:RAW_LIMIT]
        values, self._values = self._values, []
        return values

    def _line_no(self) -> int:
        return self._first_line - 1 + self._parser.CurrentLineNumber

    def _start(self, name: str, _attributes: dict[str, str]) -> None:
        self._path.append(name)
        self._leaf = self._line_no(), ""
        if name == GPU:
            self._values.append(Value(self._line_no(), TOP, GPU, ""))

    def _text(self, text: str) -> None:
        if self._leaf and len(self._leaf[1]) < MAX_LINE_CHARS:
            self._leaf = self._leaf[0], self._leaf[1] + text

    def _end(self, name: str) -> None:
        if self._leaf and len(self._path) <= _MAX_DEPTH and name != GPU and (text := self._leaf[1].strip()):
            self._values.append(Value(self._leaf[0], _section(self._path), name, text))
        self._leaf = None
        self._path.pop()
        self._is_over = not self._path


def _section(path: Sequence[str]) -> str:
    """The section of the last element. Sections of sections have names that no column is read from."""
    if GPU not in path:
        return TOP
    inner = path[path.index(GPU) + 1 : -1]
    return PROCESSES if inner[:1] == [PROCESSES] else "/".join(inner)
