"""Other estimators' answers, each called in a process of its own from the folder that SWEEPSCOPE_PEERS names.

The folder holds checkouts under the names of PEERS, and may hold `venv/bin/python` with what they import (SimuMax:
sympy, pandas, matplotlib, tqdm, graphviz, tabulate; Calculon: psutil; llm-analysis: fire); else this interpreter runs
them. Nothing of theirs is part of the repository.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from sweepscope.pipeline.estimate.physics.layouts import Array

PEERS = {"SimuMax": "run_simumax.py", "Calculon": "run_calculon.py", "llm-analysis": "run_llm_analysis.py"}
FOLDERS = {"SimuMax": "SimuMax", "Calculon": "calculon", "llm-analysis": "llm-analysis"}
VARIABLE = "SWEEPSCOPE_PEERS"
HERE = Path(__file__).parent
"""Runners import `answering` from here and nothing else of ours: a checkout may have a package `tests` of its own."""


@dataclass(frozen=True)
class Answers:
    """Of each row asked, NaN where the peer has no answer; `reason` is the commonest refusal."""

    seconds: Array
    bytes: Array
    cpu_s: float
    reason: str


def missing(peer: str) -> str:
    """Why a peer cannot be asked, or an empty text."""
    folder = os.environ.get(VARIABLE)
    if not folder:
        return f"{VARIABLE} names no folder of checkouts"
    found = Path(folder) / FOLDERS[peer]
    return "" if found.is_dir() else f"no {found}"


def ask(peer: str, questions: list[dict[str, Any]]) -> Answers:
    """A peer's answers to rows of `questions`. Raises RuntimeError where its process fails."""
    folder = Path(os.environ[VARIABLE])
    own = folder / "venv" / "bin" / "python"
    with tempfile.TemporaryDirectory() as scratch:
        asked, answered = Path(scratch) / "asked", Path(scratch) / "answered"
        asked.write_text("\n".join(json.dumps(row) for row in questions), encoding="utf-8")
        where = folder / FOLDERS[peer]
        command = [str(own if own.exists() else sys.executable), str(HERE / PEERS[peer])]
        done = subprocess.run(
            [*command, str(asked), str(answered)],
            cwd=scratch,
            env={**os.environ, "PYTHONPATH": f"{where}{os.pathsep}{HERE}", "PEER": str(where)},
            capture_output=True,
            text=True,
            check=False,
        )
        if done.returncode:
            raise RuntimeError(f"{peer}: {done.stderr.strip().splitlines()[-1:]}")
        rows = [json.loads(line) for line in answered.read_text(encoding="utf-8").splitlines()]
    reasons = [row["reason"] for row in rows if "reason" in row]
    return Answers(
        seconds=np.array([row.get("seconds", np.nan) for row in rows]),
        bytes=np.array([row.get("bytes", np.nan) for row in rows]),
        cpu_s=sum(row["cpu_s"] for row in rows),
        reason=max(set(reasons), key=reasons.count) if reasons else "",
    )
