"""Hidden files and directories, which a listing leaves out, but for some."""

from __future__ import annotations

KEPT = (".hydra", ".submitit")
"""Directories in which launchers keep what a run is known by: its whole configuration, and its job's output (hydra's
utils.py `run_job`; hydra_submitit_launcher's `submitit_folder`)."""


def is_hidden(name: str) -> bool:
    """Whether a file or directory of that name is left out.

    >>> is_hidden(".git"), is_hidden(".hydra"), is_hidden("train.log")
    (True, False, False)
    """
    return name.startswith(".") and name not in KEPT
