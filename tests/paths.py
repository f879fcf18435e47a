"""Where tests find files: the checkout, the goldens, and the corpus of real files, which is kept elsewhere."""

from __future__ import annotations

import os
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
GOLDEN = ROOT / "tests" / "golden"
CORPUS = Path(os.environ.get("SWEEPSCOPE_CORPUS") or ROOT.parent / "shared" / "fixtures").resolve()
"""Folders `logs`, `nccl`, `memory`, `picotron_sweep` and `real_runs`; tests skip what is not there."""

NO_CORPUS = f"no corpus of real files in {CORPUS}: SWEEPSCOPE_CORPUS names another folder"
