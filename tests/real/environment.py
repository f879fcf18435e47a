"""Scratch environments: real trainers (`SWEEPSCOPE_REAL_ENV`, or in the user's cache) and what reads configurations."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

REQUIREMENTS = (
    "transformers",
    "trl",
    "accelerate",
    "datasets",
    "lightning",
    "rich",
    "litgpt",
    "jsonargparse",
    "requests",
)

FRAMEWORKS = ("torchtitan==0.3.0", "omegaconf", "einops", "six", "dacite", "hjson", "py-cpuinfo", "msgpack", "ninja")
"""Packages whose own code reads configurations, and what those below import to do so."""

WITHOUT_NEEDS = ("megatron-bridge==0.3.1", "megatron-core==0.16.1", "axolotl==0.19.0", "deepspeed==0.19.8")
"""Frameworks that want packages which are built for a GPU, and older versions of some than the trainers have."""


def python() -> Path:
    """The interpreter of the environment, which is made if it is not there yet.

    Its packages come from pip's own configuration. `SWEEPSCOPE_REAL_TORCH` names a torch that needs no CUDA libraries,
    such as `torch==2.13.0+cpu` where an index has it.
    """
    folder = Path(os.environ.get("SWEEPSCOPE_REAL_ENV") or _cache() / "sweepscope" / "real-trainers")
    found, stamp = folder / "bin" / "python", folder / ".installed"
    wanted = [os.environ.get("SWEEPSCOPE_REAL_TORCH", "torch"), *REQUIREMENTS]
    if stamp.exists() or (found.exists() and _has_trainers(found)):
        return found
    sys.stderr.write(f"installing {', '.join(wanted)} into {folder}; minutes, once\n")
    subprocess.run([sys.executable, "-m", "venv", folder], check=True)
    subprocess.run([found, "-m", "pip", "install", "--quiet", *wanted], check=True)
    # litgpt asks for a numpy that is too old for pyarrow, but runs with a new one.
    subprocess.run([found, "-m", "pip", "install", "--quiet", "--upgrade", "numpy>=2"], check=True)
    stamp.touch()
    return found


def frameworks() -> Path:
    """The interpreter with what reads configurations, made beside that of the trainers if it is not there yet."""
    trainers = python()
    folder = _cache() / "sweepscope" / "frameworks"
    found, stamp = folder / "bin" / "python", folder / ".installed"
    if stamp.exists():
        return found
    sys.stderr.write(f"installing {', '.join((*FRAMEWORKS, *WITHOUT_NEEDS))} into {folder}; minutes, once\n")
    subprocess.run([sys.executable, "-m", "venv", folder], check=True)
    (packages,) = folder.glob("lib/python3*/site-packages")
    (of_trainers,) = trainers.parents[1].glob("lib/python3*/site-packages")
    (packages / "trainers.pth").write_text(f"{of_trainers}\n")
    subprocess.run([found, "-m", "pip", "install", "--quiet", *FRAMEWORKS], check=True)
    subprocess.run([found, "-m", "pip", "install", "--quiet", "--no-deps", *WITHOUT_NEEDS], check=True)
    stamp.touch()
    return found


def _cache() -> Path:
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")


def _has_trainers(interpreter: Path) -> bool:
    """Whether somebody else's environment will do."""
    code = "import importlib.util as u, sys; sys.exit(not all(map(u.find_spec, sys.argv[1:])))"
    return not subprocess.run([interpreter, "-c", code, "torch", *REQUIREMENTS], check=False).returncode
