"""What a training is, written down by itself, outside of the folder that is ingested."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any


class Truth:
    """The file of one training; of several processes, the first one writes it.

    It holds `framework`, `facts` (columns of `runs`) and `attempts`, each with its `status` and its logged `steps` as
    pairs of step and loss. An attempt that does not say how it ends was killed.
    """

    def __init__(self, path: str, framework: str, **facts: float | None) -> None:
        self._path = Path(path)
        self._is_writer = os.environ.get("RANK", "0") == "0"
        known = json.loads(self._path.read_text()) if self._path.exists() else {"attempts": []}
        self._content: dict[str, Any] = {"framework": framework, "facts": facts, "attempts": known["attempts"]}
        self._content["attempts"].append({"status": "truncated", "steps": []})
        self._write()

    def knows(self, **facts: float | None) -> None:
        """Add facts that turned out later."""
        self._content["facts"].update(facts)
        self._write()

    def step(self, step: int, loss: float) -> None:
        """Add a step that the trainer logs."""
        self._content["attempts"][-1]["steps"].append([step, loss])
        self._write()

    def ends(self, status: str) -> None:
        """Say how the attempt ended."""
        self._content["attempts"][-1]["status"] = status
        self._write()

    def _write(self) -> None:
        if self._is_writer:
            new = self._path.with_suffix(".new")
            new.write_text(json.dumps(self._content))
            new.replace(self._path)
