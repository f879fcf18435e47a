"""Settings of runs that stand beside their logs: in configurations, in names of folders, and in trackers."""

from __future__ import annotations

from collections.abc import Sequence

import polars as pl

from sweepscope.pipeline.ingest.accumulator import BatchAccumulator
from sweepscope.pipeline.ingest.named_configurations import settings_named
from sweepscope.pipeline.ingest.read_sidecar import folder_names
from sweepscope.pipeline.ingest.tracked_runs import TrackedSources
from sweepscope.pipeline.logs.dialect import Dialect
from sweepscope.pipeline.logs.dialects import bare_progress_bar
from sweepscope.pipeline.logs.facts import INFERRED
from sweepscope.pipeline.logs.runs.assemble import SIDECAR_SETTINGS
from sweepscope.pipeline.logs.sidecars.documents import is_script

_UNNAMED = (INFERRED, bare_progress_bar.DIALECT.name)
"""Dialects of logs whose trainer has no name, so that a configuration under anybody's names is its own."""


def settings_beside_logs(
    batch: BatchAccumulator,
    sources: pl.DataFrame,
    tracked: TrackedSources,
    arguments: pl.DataFrame,
    dialects: Sequence[Dialect],
) -> tuple[pl.DataFrame, pl.DataFrame]:
    """SIDECAR_SETTINGS rows of settings, and of what configurations state under their own names.

    Args:
        batch: what was read.
        sources: the files with their dialects, and the runs of trackers.
        tracked: the runs of trackers.
        arguments: SETTING_FACTS rows of the logs' arguments.
        dialects: those to read with.
    """
    configured = {row["unit"] for row in [*batch.sidecars, *batch.own_settings]}
    named, documents = settings_named(arguments, sources, configured, dialects)
    settings = [*batch.sidecars, *_own(batch, sources), *folder_names(sources), *tracked.sidecars, *named]
    return (
        pl.DataFrame(settings, schema=SIDECAR_SETTINGS),
        pl.DataFrame([*batch.documents, *tracked.documents, *documents], schema=SIDECAR_SETTINGS),
    )


def _own(batch: BatchAccumulator, sources: pl.DataFrame) -> list[dict[str, str]]:
    """Settings of configurations that no reader knows, beside logs of trainers without a name.

    Of a launch script they hold for any: it is the run's own command, though its trainer may have names of its own.
    """
    is_known = pl.col("kind").is_in(["log", "history"]) & ~pl.col("dialect").is_in(_UNNAMED)
    known = set(sources.filter(is_known)["unit"])
    scripts = [row | {"setting_source": "launch_script"} for row in batch.own_settings if is_script(row["path"])]
    return [
        *(row for row in batch.own_settings if row["unit"] not in known),
        *(row for row in scripts if row["unit"] in known),
    ]
