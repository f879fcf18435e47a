"""Which file of results is it: nccl-tests' document, or rccl-tests' records?"""

from __future__ import annotations

from collections.abc import Callable

from pipeline.nccl import bench_json, bench_records
from pipeline.nccl.facts import Facts


def reader_of(head: str) -> Callable[[str, int], Facts] | None:
    """What reads a whole text that begins so, given its source; None for any other text."""
    if bench_json.is_bench(head):
        return bench_json.read_bench
    return bench_records.read_bench if bench_records.is_bench(head) else None
