"""Steps in a profiler trace (Chrome trace of Kineto), and how its GPU kernels share their time.

Format: libkineto/src/output_json.cpp (`"ph": "X", "cat": ..., "name": ..., "pid", "tid", "ts", "dur"` in this order,
microseconds), torch/profiler/profiler.py (`ProfilerStep#N`, as `user_annotation` of the CPU, and as
`gpu_user_annotation` around the kernels that it launched), NCCL's kernels (`ncclDevKernel_AllReduce_Sum_bf16_RING_LL`,
before 2.19 `ncclKernel_...`). Events are searched one by one, in blocks: traces reach gigabytes, are not
always valid JSON, and a number for each kernel is all that is kept.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

from sweepscope.pipeline.memory.profiler.traced_work import TracedWork

_EVENT = re.compile(
    rb'"ph"\s*:\s*"X"\s*,\s*"cat"\s*:\s*"([^"]{1,64})"\s*,\s*"name"\s*:\s*"((?:[^"\\]|\\.){1,4000})"\s*,'
    rb'\s*"pid"\s*:\s*[^,]{1,64},\s*"tid"\s*:\s*[^,]{1,64},\s*"ts"\s*:\s*(-?\d{1,19}(?:\.\d{1,9})?)\s*,'
    rb'\s*"dur"\s*:\s*(\d{1,19}(?:\.\d{1,9})?)'
)
_RANK = re.compile(rb'"distributedInfo"\s*:\s*\{[^{}]{0,400}?"rank"\s*:\s*(\d{1,7})')
_STEP = re.compile(rb"ProfilerStep#(\d{1,12})")
_BLOCK_BYTES, _LOOK_BACK = 8 << 20, 8 << 10


@dataclass
class StepTimeline:
    """What a trace holds of steps and kernels; `add` takes its bytes in turn, `finish` the rest."""

    rank: int | None = None
    _rest: bytes = b""
    work: TracedWork = field(default_factory=TracedWork)

    def watch(self, chunks: Iterable[bytes]) -> Iterator[bytes]:
        """The chunks, each added on its way."""
        for chunk in chunks:
            self.add(chunk)
            yield chunk
        self._take(self._rest)
        self._rest = b""

    def add(self, chunk: bytes) -> None:
        """The next bytes of the trace."""
        self._rest += chunk
        if len(self._rest) >= _BLOCK_BYTES:
            done = self._take(self._rest)
            self._rest = self._rest[max(done, len(self._rest) - _LOOK_BACK) :]

    def _take(self, text: bytes) -> int:
        """Offset behind the last event of a text."""
        if self.rank is None and (rank := _RANK.search(text)):
            self.rank = int(rank[1])
        end = 0
        for found in _EVENT.finditer(text):
            end = found.end()
            category, name, begin, duration = found.groups()
            span = float(begin), float(begin) + float(duration)
            if category == b"kernel":
                self.work.add_kernel(name.decode("utf-8", "replace"), span)
            elif category in (b"gpu_memcpy", b"gpu_memset"):
                self.work.add_copy(span)
            elif category in (b"user_annotation", b"gpu_user_annotation") and (step := _STEP.fullmatch(name)):
                of_gpu = category == b"gpu_user_annotation"
                (self.work.gpu_steps if of_gpu else self.work.cpu_steps)[int(step[1])] = span
        return end

    def rows(self) -> dict[str, list[dict[str, Any]]]:
        """Rows of `trace_steps` and `trace_collectives`, without what names the file; none without a step."""
        return self.work.rows()
