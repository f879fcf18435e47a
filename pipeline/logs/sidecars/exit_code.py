"""What a script keeps of how its training ended: `echo $? > exit_code`.

Codes: timeout(1) of coreutils exits with 124 when the time is over; a shell with 128 and the number of the signal that
ended the program, of which 2 and 15 are somebody's wish.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from sweepscope.pipeline.logs.dialect import Sidecar

_ENDED = {0: "completed", 124: "timeout", 130: "cancelled", 143: "cancelled"}
_NAMES = ("exit_code", "exit-code", "exitcode", "exit_status", "returncode", "return_code", "retcode")
_CODE = re.compile(r"(?i)\s*(?:exit[ _-]?(?:code|status)|return[ _-]?code)?\s*[:=]?\s*(\d{1,3})\s*")


def read_exit_code(text: str) -> Mapping[str, str]:
    """The status as a trainer's status file has it. Raises ValueError for what is no exit code.

    >>> read_exit_code("0\\n"), read_exit_code("exit code: 137")
    ({'status_file': 'completed'}, {'status_file': 'fail'})
    """
    found = _CODE.fullmatch(text)
    if found is None or int(found[1]) > 255:
        raise ValueError("no exit code of a program")
    return {"status_file": _ENDED.get(int(found[1]), "fail")}


EXIT_CODE = tuple(
    Sidecar(f"{name}{suffix}", "status", read_exit_code, marks_run=False) for name in _NAMES for suffix in ("", ".txt")
)
