"""Steps in a profiler trace (Chrome trace of Kineto), and how its GPU kernels share their time.

Format: libkineto/src/output_json.cpp (`"ph": "X", "cat": ..., "name": ..., "pid", "tid", "ts", "dur"` in this order,
microseconds), torch/profiler/profiler.py (`ProfilerStep#N`, as `user_annotation` of the CPU, and as
`gpu_user_annotation` around the kernels that it launched), NCCL's kernels (`ncclDevKernel_AllReduce_Sum_bf16_RING_LL`,
before 2.19 `ncclKernel_...`). Exchange, compute and their overlap as Holistic Trace Analysis has them
(hta/analyzers/communication_analysis.py). Events are searched one by one, in blocks: traces reach gigabytes, are not
always valid JSON, and a number for each kernel is all that is kept.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

_EVENT = re.compile(
    rb'"ph"\s*:\s*"X"\s*,\s*"cat"\s*:\s*"([^"]{1,64})"\s*,\s*"name"\s*:\s*"((?:[^"\\]|\\.){1,4000})"\s*,'
    rb'\s*"pid"\s*:\s*[^,]{1,64},\s*"tid"\s*:\s*[^,]{1,64},\s*"ts"\s*:\s*(-?\d{1,19}(?:\.\d{1,9})?)\s*,'
    rb'\s*"dur"\s*:\s*(\d{1,19}(?:\.\d{1,9})?)'
)
_RANK = re.compile(rb'"distributedInfo"\s*:\s*\{[^{}]{0,400}?"rank"\s*:\s*(\d{1,7})')
_STEP = re.compile(rb"ProfilerStep#(\d{1,12})")
_OPERATION = re.compile(rb"AllReduce|AllGather|ReduceScatter|AllToAll|SendRecv|Broadcast|Reduce|Gather|Scatter")
_ANY_NCCL = re.compile(rb"(?i)^(?:void )?(?:nccl|rccl)")
_BLOCK_BYTES, _LOOK_BACK = 8 << 20, 8 << 10
_US = 1e-6
_OTHER = "other"

Spans = NDArray[np.float64]
"""Begin and end in microseconds, one row each."""


@dataclass
class StepTimeline:
    """What a trace holds of steps and kernels; `add` takes its bytes in turn, `finish` the rest."""

    rank: int | None = None
    _rest: bytes = b""
    _cpu_steps: dict[int, tuple[float, float]] = field(default_factory=dict)
    _gpu_steps: dict[int, tuple[float, float]] = field(default_factory=dict)
    _compute: list[tuple[float, float]] = field(default_factory=list)
    _copies: list[tuple[float, float]] = field(default_factory=list)
    _exchange: dict[str, list[tuple[float, float]]] = field(default_factory=dict)

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
                if _ANY_NCCL.match(name):
                    self._exchange.setdefault(_operation(name), []).append(span)
                else:
                    self._compute.append(span)
            elif category in (b"gpu_memcpy", b"gpu_memset"):
                self._copies.append(span)
            elif category in (b"user_annotation", b"gpu_user_annotation") and (step := _STEP.fullmatch(name)):
                of_gpu = category == b"gpu_user_annotation"
                (self._gpu_steps if of_gpu else self._cpu_steps)[int(step[1])] = span
        return end

    def rows(self) -> dict[str, list[dict[str, Any]]]:
        """Rows of `trace_steps` and `trace_collectives`, without what names the file; none without a step."""
        steps = self._cpu_steps or self._gpu_steps
        compute = _united(np.array(self._compute, dtype=np.float64).reshape(-1, 2))
        exchange = _united(np.array([span for spans in self._exchange.values() for span in spans]).reshape(-1, 2))
        copies = np.array(self._copies, dtype=np.float64).reshape(-1, 2)
        any_work = _united(np.concatenate([compute, exchange, copies]))
        both = _united(np.concatenate([compute, exchange]))
        has_gpu = len(any_work) > 0
        found = []
        for number, (begin, end) in sorted(steps.items()):
            row: dict[str, Any] = {"step": number, "duration_s": _seconds(end - begin)}
            # Kernels run later than they are launched: the GPU's own mark of a step is around them.
            window = self._gpu_steps.get(number, (begin, end))
            if has_gpu:
                busy, computing, exchanging = (_within(spans, window) for spans in (any_work, compute, exchange))
                exposed = max(_within(both, window) - computing, 0.0)
                row |= {"device_busy_s": busy, "compute_s": computing, "exchange_s": exchanging}
                row["exposed_exchange_s"] = min(exposed, exchanging)
                if exchanging:
                    row["hidden_exchange_share"] = 1 - row["exposed_exchange_s"] / exchanging
            found.append(row)
        return {"trace_steps": found, "trace_collectives": self._collectives(len(steps)) if steps else []}

    def _collectives(self, steps: int) -> list[dict[str, Any]]:
        return [
            {
                "trace_op": operation,
                "calls": len(spans),
                "traced_steps": steps,
                "kernel_s": _seconds(sum(end - begin for begin, end in spans)),
                "longest_kernel_s": _seconds(max(end - begin for begin, end in spans)),
            }
            for operation, spans in sorted(self._exchange.items())
        ]


def _operation(name: bytes) -> str:
    """
    >>> _operation(b"ncclDevKernel_AllReduce_Sum_bf16_RING_LL(ncclDevKernelArgsStorage<4096ul>)")
    'AllReduce'
    >>> _operation(b"ncclKernel_AllGather_RING_LL_Sum_int8_t(ncclWorkElem)"), _operation(b"ncclDevKernel_Generic(x)")
    ('AllGather', 'other')
    """
    found = _OPERATION.search(name)
    return found[0].decode() if found else _OTHER


def _united(spans: Spans) -> Spans:
    """Spans that do not overlap, in order, of the same time."""
    if not len(spans):
        return spans
    ordered = spans[np.argsort(spans[:, 0], kind="stable")]
    ends = np.maximum.accumulate(ordered[:, 1])
    is_first = np.concatenate([[True], ordered[1:, 0] > ends[:-1]])
    last = np.concatenate([np.flatnonzero(is_first)[1:] - 1, [len(ordered) - 1]])
    return np.column_stack([ordered[is_first, 0], ends[last]])


def _within(spans: Spans, window: tuple[float, float]) -> float:
    """Seconds of united spans that lie in a window."""
    clipped = np.clip(spans, *window)
    return _seconds(float((clipped[:, 1] - clipped[:, 0]).sum()))


def _seconds(microseconds: float) -> float:
    """Traces have nanoseconds."""
    return round(microseconds * _US, 9)
