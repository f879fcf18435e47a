"""How many layouts per second the estimator answers, on one core, and a whole search end to end.

Peers, as their authors or this project's notes state them on comparable machines: Calculon 133-386, llm-analysis 4,030,
SimuMax 9 configurations per second and core. Processor time is measured, so that a busy machine disturbs it least.
"""

from __future__ import annotations

import time
from collections.abc import Callable

import numpy as np
import polars as pl

from pipeline.estimate.cluster import find_cluster
from pipeline.estimate.enumerate import Request, blocks
from pipeline.estimate.estimate import estimate
from pipeline.estimate.frame import estimate_frame
from pipeline.estimate.models import find_model, shape_of
from pipeline.estimate.profile import choose_profile
from pipeline.estimate.published_tables import published_table
from pipeline.estimate.question import Question
from pipeline.estimate.search import search


def _request(model: str, card: str, gpus: int, gbs: int, **choices: int) -> Request:
    cluster, row = find_cluster(card), find_model(model)
    if cluster is None or row is None:
        raise ValueError(f"{model} on {card} is not in the tables")
    asked = Question(shape_of(row), cluster, choose_profile(cluster.generation, None), 2048)
    return Request(asked, num_gpus=gpus, gbs=gbs, **choices)


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
    listed = grids[0].at[np.ones(grids[0].codes.shape, np.bool_)]
    list_s = _cpu_s(lambda: estimate(request.asked, listed))
    table = published_table("ultrascale_playbook_all_runs")
    table_s = _cpu_s(lambda: estimate_frame(table))
    rows = [
        ("memory and step time, a grid of layouts", cells, grid_s),
        ("memory and step time, a list in any order", listed.shape[0], list_s),
        ("`estimate` on the playbook's table, reading included", table.height, table_s),
    ]
    large = _request("GPT-3 175B", "A100-SXM-80GB", 3072, 1536, max_mbs=512)
    for name, asked in (
        ("search: 175B on 3,072 A100, enumeration included", request),
        ("search: the same with micro-batches up to 512", large),
        ("search: DeepSeek-V3 on 2,048 H800", _request("DeepSeek-V3", "H800-80GB", 2048, 15360)),
    ):
        rows.append((name, search(asked).examined, _cpu_s(lambda asked=asked: search(asked))))
    return pl.DataFrame(
        [(name, f"{count:,}", seconds, count / seconds / 1e6) for name, count, seconds in rows],
        schema=["estimator", "layouts", "CPU s", "M layouts/s"],
        orient="row",
    )
