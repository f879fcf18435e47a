"""The steps of the graph, done for batch after batch in this process, with a record of each run for Dagster."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial

import polars as pl

from sweepscope.pipeline.ingest.batch import Tables
from sweepscope.pipeline.ingest.dialect_files import InForce
from sweepscope.pipeline.ingest.engine import Engine
from sweepscope.pipeline.orchestration import steps
from sweepscope.pipeline.orchestration.run_record import RETRIES, recorded
from sweepscope.pipeline.orchestration.run_tags import TRIGGER_TAG, batch_tags
from sweepscope.pipeline.orchestration.steps import OnFile
from sweepscope.pipeline.store.home import Home


def run_batches(
    home: Home,
    work: Sequence[pl.DataFrame],
    *,
    in_use: InForce,
    with_published: bool,
    workers: int,
    engine: Engine,
    on_file: OnFile,
) -> Iterator[tuple[Tables, str | None]]:
    """What each batch of `work` committed, and the path of the store behind the last one.

    Arguments and errors as of `run.ingest_paths`.
    """
    with engine.cluster(home, processes=workers) as cluster:
        parse = partial(
            steps.parse,
            home=home,
            in_use=in_use,
            with_published=with_published,
            workers=workers,
            cluster=cluster,
            on_file=on_file,
        )
        for left, batch in zip(reversed(range(len(work))), work, strict=True):
            yield _run(home, batch, parse, is_last=not left)


def _run(
    home: Home, batch: pl.DataFrame, parse: Callable[[pl.DataFrame], steps.Step[steps.Parsed]], *, is_last: bool
) -> tuple[Tables, str | None]:
    """What one batch committed, and the path of the store if it `is_last` and so published."""
    tags = {TRIGGER_TAG: "command", **batch_tags(batch)}
    with recorded(home, "ingest" if is_last else "load", tags) as run:
        found = run.do("discovered", partial(steps.found, batch))
        valid = run.do("validated", partial(steps.validate, run.do("parsed", partial(parse, found))))
        committed = run.do("lake", partial(steps.commit, valid, home, batch_id=run.run_id), retries=RETRIES)
        if not is_last:
            return committed, None
        store = run.do("store", partial(steps.publish_newest, home), retries=RETRIES)
        run.do("marts", partial(steps.count_view_columns, home))
        return committed, store
