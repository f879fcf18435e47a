"""What the runners of other estimators share: questions in, answers out, one JSON object a line.

Runs under the interpreter that has the peer's own dependencies, so it imports nothing of ours but this module.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

Answer = tuple[float, float]
"""Seconds of a step, and bytes at the peak."""


def serve(answer: Callable[[dict[str, Any]], Answer]) -> None:
    """Answers to the questions of the file argv[1], into the file argv[2]; the reason where there is none."""
    questions = [json.loads(line) for line in Path(sys.argv[1]).read_text(encoding="utf-8").splitlines()]
    lines = []
    for asked in questions:
        begun = time.process_time()
        try:
            seconds, memory = answer(asked)
            found: dict[str, Any] = {"seconds": seconds, "bytes": memory}
        except Exception as error:  # a peer may refuse in any way
            found = {"reason": f"{type(error).__name__}: {error}"[:200]}
        lines.append(json.dumps({**found, "cpu_s": time.process_time() - begun}))
    Path(sys.argv[2]).write_text("\n".join(lines), encoding="utf-8")
