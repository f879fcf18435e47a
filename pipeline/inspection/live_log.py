"""The end of a log that may still be written, read from where it lies."""

from __future__ import annotations

import os
import re
import stat
from dataclasses import dataclass

from sweepscope.pipeline.io.file_names import on_disk
from sweepscope.pipeline.io.remote import is_url
from sweepscope.pipeline.text.secrets import hide

_TAIL_BYTES = 16 << 10
_MOST_CHARS = 400
_COLOURS = re.compile(r"\x1b\[[0-9;?]*[ -/]*[@-~]")


@dataclass(frozen=True)
class LogEnd:
    """When a log was last written to (seconds since 1970), its size, and its last line that is not blank."""

    mtime_s: float
    bytes: int
    last_line: str


def end_of(path: str) -> LogEnd | None:
    """The end of a log, as the store names it; None for a URL, and for a file that is gone or cannot be read.

    Of a line that is redrawn (a progress bar) the last state counts; credentials are hidden.
    """
    if is_url(path) or path.endswith((".gz", ".zst")):
        return None
    try:
        # A pipe or device would block: only what is a plain file is read.
        handle = os.open(on_disk(path), os.O_RDONLY | os.O_NONBLOCK)
    except OSError:
        return None
    found = os.fstat(handle)
    if not stat.S_ISREG(found.st_mode):
        os.close(handle)
        return None
    with os.fdopen(handle, "rb") as file:
        file.seek(max(0, found.st_size - _TAIL_BYTES))
        text = file.read(_TAIL_BYTES).decode("utf-8", "replace")
    return LogEnd(found.st_mtime, found.st_size, last_line(text))


def last_line(text: str) -> str:
    r"""The last line of a text that is not blank, without colours and credentials, cut to a readable length.

    >>> last_line("step 1\n  50%|##   | 5/10\r  60%|###  | 6/10\n\n")
    '60%|###  | 6/10'
    """
    lines = (_COLOURS.sub("", line).replace("\0", "").strip() for line in reversed(re.split(r"[\r\n]+", text)))
    found = next((line for line in lines if line), "")
    return hide(found)[:_MOST_CHARS]
