"""Which file of results is it: nccl-tests' document, or rccl-tests' records?"""

from __future__ import annotations

from collections.abc import Callable

from sweepscope.pipeline.nccl.bench import json_report, rccl_records
from sweepscope.pipeline.nccl.facts import Facts


def reader_of(head: str) -> Callable[[str, int], Facts] | None:
    """What reads a whole text that begins so, given its source; None for any other text."""
    if json_report.is_bench(head):
        return json_report.read_bench
    return rccl_records.read_bench if rccl_records.is_bench(head) else None
