"""Dagster's settings in a home, `dagster.yaml`: later versions renew them unless somebody has changed the file."""

from __future__ import annotations

import hashlib
from contextlib import suppress
from pathlib import Path
from typing import Any

import yaml

from sweepscope.pipeline.store.durable_files import write_new, write_over
from sweepscope.pipeline.store.home import Home

SETTINGS = """\
# Written by sweepscope, and renewed by later versions as long as nobody changes it.
telemetry:
  enabled: false
nux:
  enabled: false
# Runs whose process was killed are found by their lock files (lost_runs.py) and read again.
run_retries:
  enabled: true
  max_retries: 2
run_monitoring:
  enabled: false
# Each run reads with several processes; only one at a time writes. More at once gain nothing and cost memory.
concurrency:
  runs:
    max_concurrent_runs: 2
# The store has a policy: nothing new for a day is worth a look.
freshness:
  enabled: true
# Runs, and ticks of schedules, are removed as operations.toml says: Dagster has no settings for them.
retention:
  sensor:
    purge_after_days:
      skipped: 1
      success: 7
      failure: 7
  schedule:
    purge_after_days:
      skipped: 1
      success: 7
      failure: 7
"""
EARLIER = ("4731f16e680011c6", "04640a147de89047", "39ad14ed88c79950")
"""Hashes of what earlier versions wrote: such a file is replaced, one that was changed by hand is not."""


def write_settings(home: Home) -> None:
    """Write the settings where there are none, or those of an earlier version. Raises OSError."""
    home.dagster.mkdir(parents=True, exist_ok=True)
    path = settings_file(home)
    if not path.exists():
        with suppress(FileExistsError):  # another process has written it
            write_new(path, SETTINGS)
    elif digest(path.read_text(encoding="utf-8")) in EARLIER:
        write_over(path, SETTINGS)


def read_dagster_settings(home: Home) -> dict[str, Any]:
    """The settings that count; ours where the file holds none."""
    given = yaml.safe_load(settings_file(home).read_text(encoding="utf-8"))
    return given if isinstance(given, dict) else dict(yaml.safe_load(SETTINGS))


def settings_file(home: Home) -> Path:
    """Dagster's settings in a home."""
    return home.dagster / "dagster.yaml"


def missing_settings(home: Home) -> list[str]:
    """Names of settings that a file changed by hand lacks beside those of this version; none for one of ours."""
    try:
        given = yaml.safe_load(settings_file(home).read_text(encoding="utf-8"))
    except FileNotFoundError:
        return []
    ours = yaml.safe_load(SETTINGS)
    return sorted(set(ours) - set(given)) if isinstance(given, dict) else sorted(ours)


def digest(text: str) -> str:
    """Hash of the text of a settings file, as in EARLIER."""
    return hashlib.blake2b(text.encode(), digest_size=8).hexdigest()
