"""How many layouts per second the estimator answers, on one core, and a whole search end to end.

llm-analysis is run beside it where it is installed (`peers`). Calculon and SimuMax as this project's notes state them
on a comparable machine: 133-386 and 9 configurations per second and core. Processor time is measured, so that a busy
machine disturbs it least.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import fields, replace

import numpy as np
import polars as pl

from sweepscope.pipeline.estimate.calibration.published_tables import published_table
from sweepscope.pipeline.estimate.physics.estimate import estimate
from sweepscope.pipeline.estimate.physics.layouts import SCHEDULES, Layouts
from sweepscope.pipeline.estimate.physics.profile import choose_profile
from sweepscope.pipeline.estimate.physics.question import Question
from sweepscope.pipeline.estimate.rows.estimate_rows import estimate_frame
from sweepscope.pipeline.estimate.search.enumerate import Request, blocks
from sweepscope.pipeline.estimate.search.search import search
from sweepscope.pipeline.reference.clusters import find_cluster
from sweepscope.pipeline.reference.models import find_model, shape_of
from tests.benchmarks.peers import llm_analysis_rate


def _request(model: str, card: str, gpus: int, gbs: int, **choices: int) -> Request:
    cluster, row = find_cluster(card), find_model(model)
    if cluster is None or row is None:
        raise ValueError(f"{model} on {card} is not in the tables")
    asked = Question(shape_of(row), cluster, choose_profile(cluster.generation, None), 2048)
    return Request(asked, num_gpus=gpus, gbs=gbs, **choices)


def _listed(parts: list[Layouts]) -> Layouts:
    """Lists one after another, then shuffled."""
    order = np.random.default_rng(0).permutation(sum(part.shape[0] for part in parts))
    whole = {entry.name: np.concatenate([getattr(part, entry.name) for part in parts]) for entry in fields(Layouts)}
    return Layouts(**whole)[order]


def _cpu_s(work: Callable[[], object], repeats: int = 3) -> float:
    times = []
    for _ in range(repeats):
        begin = time.process_time()
        work()
        times.append(time.process_time() - begin)
    return min(times)


def estimator_rates() -> pl.DataFrame:
    """Layouts per second: a grid, a list, a table of rows; and searches end to end."""
    request = _request("GPT-3 175B", "A100-SXM-80GB", 3072, 1536)
    grids = list(blocks(request))
    cells = sum(block.codes.size for block in grids)
    grid_s = _cpu_s(lambda: [estimate(request.asked, block.at) for block in grids])
    listed = _listed([block.at[np.ones(block.codes.shape, np.bool_)] for block in grids])
    list_s = _cpu_s(lambda: estimate(request.asked, listed))
    parts_s = _cpu_s(lambda: estimate(request.asked, listed).time)
    table = published_table("ultrascale_playbook_all_runs")
    table_s = _cpu_s(lambda: estimate_frame(table))
    rows = [
        ("memory and step time, a grid of layouts", cells, grid_s),
        ("memory and step time, a list in any order", listed.shape[0], list_s),
        ("the same with their parts", listed.shape[0], parts_s),
        ("`estimate` on the playbook's table, reading included", table.height, table_s),
    ]
    large = replace(request, schedules=SCHEDULES, shard_groups=("all", "node"))
    for name, asked in (
        ("search: 175B on 3,072 A100, enumeration included", request),
        ("search: the same with every schedule, sharding in nodes", large),
        ("search: DeepSeek-V3 on 2,048 H800", _request("DeepSeek-V3", "H800-80GB", 2048, 15360)),
    ):
        rows.append((name, search(asked).examined, _cpu_s(lambda asked=asked: search(asked))))
    rate, reason = llm_analysis_rate()
    rows.append((f"llm-analysis, 175B on 3,072 A100 {reason}".strip(), int(rate or 0), 1.0 if rate else None))
    return pl.DataFrame(
        [(name, f"{count:,}", seconds, count / seconds / 1e6 if seconds else None) for name, count, seconds in rows],
        schema={"estimator": pl.String, "layouts": pl.String, "CPU s": pl.Float64, "M layouts/s": pl.Float64},
        orient="row",
    )
