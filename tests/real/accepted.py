"""`python -m tests.real.accepted [CHECKOUT ...]`: launch files read by the frameworks' own code.

Checkouts are folders as in PYTHONPATH, for frameworks that are no packages: `nanotron/src`, Megatron-LM.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from tests.real import environment

_TEST = "tests/pipeline/launch/test_accepted.py"


def main() -> int:
    """pytest's exit status; `-rs` names what was not there."""
    checkouts = os.pathsep.join(str(Path(folder).resolve()) for folder in sys.argv[1:])
    asked = {
        "SWEEPSCOPE_FRAMEWORKS_PYTHON": str(environment.frameworks()),
        "SWEEPSCOPE_FRAMEWORKS_PATH": checkouts,
    }
    command = [sys.executable, "-m", "pytest", "-n", "0", "-v", "-rs", _TEST]
    return subprocess.run(command, env={**os.environ, **asked}, check=False).returncode


if __name__ == "__main__":
    sys.exit(main())
