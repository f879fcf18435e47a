"""Steps and kernels of a trace, whichever profiler wrote it, as rows of `trace_steps` and `trace_collectives`.

Exchange, compute and their overlap as Holistic Trace Analysis has them (hta/analyzers/communication_analysis.py).
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

_OPERATION = re.compile(r"AllReduce|AllGather|ReduceScatter|AllToAll|SendRecv|Broadcast|Reduce|Gather|Scatter")
_ANY_NCCL = re.compile(r"(?i)^(?:void )?(?:nccl|rccl)")
_US = 1e-6
_OTHER = "other"

Span = tuple[float, float]
"""Begin and end in microseconds."""
Spans = NDArray[np.float64]
"""Many of them, one row each."""


@dataclass
class TracedWork:
    """Steps of one process and what its GPU did, as far as they were added.

    Attributes:
        cpu_steps: spans by the number of the step, as the CPU marks them.
        gpu_steps: the same around the kernels that were launched in them.
    """

    cpu_steps: dict[int, Span] = field(default_factory=dict)
    gpu_steps: dict[int, Span] = field(default_factory=dict)
    _compute: list[Span] = field(default_factory=list)
    _copies: list[Span] = field(default_factory=list)
    _exchange: dict[str, list[Span]] = field(default_factory=dict)

    def add_kernel(self, name: str, span: Span) -> None:
        """A kernel: of NCCL or RCCL, or one that computes."""
        if _ANY_NCCL.match(name):
            self._exchange.setdefault(operation_of(name), []).append(span)
        else:
            self._compute.append(span)

    def add_copy(self, span: Span) -> None:
        """A copy, or memory that is set."""
        self._copies.append(span)

    def rows(self, *, needs_steps: bool = True) -> dict[str, list[dict[str, Any]]]:
        """Rows of `trace_steps` and `trace_collectives`, without what names the file.

        Without a step there are none, or collectives alone: `needs_steps`.
        """
        steps = self.cpu_steps or self.gpu_steps
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
            window = self.gpu_steps.get(number, (begin, end))
            if has_gpu:
                busy, computing, exchanging = (_within(spans, window) for spans in (any_work, compute, exchange))
                exposed = max(_within(both, window) - computing, 0.0)
                row |= {"device_busy_s": busy, "compute_s": computing, "exchange_s": exchanging}
                row["exposed_exchange_s"] = min(exposed, exchanging)
                if exchanging:
                    row["hidden_exchange_share"] = 1 - row["exposed_exchange_s"] / exchanging
            found.append(row)
        return {
            "trace_steps": found,
            "trace_collectives": self._collectives(len(steps)) if steps or not needs_steps else [],
        }

    def _collectives(self, steps: int) -> list[dict[str, Any]]:
        return [
            {
                "trace_op": operation,
                "calls": len(spans),
                "traced_steps": steps or None,
                "kernel_s": _seconds(sum(end - begin for begin, end in spans)),
                "longest_kernel_s": _seconds(max(end - begin for begin, end in spans)),
            }
            for operation, spans in sorted(self._exchange.items())
        ]


def operation_of(name: str) -> str:
    """The collective of a kernel, as NCCL names it.

    >>> operation_of("ncclDevKernel_AllReduce_Sum_bf16_RING_LL(ncclDevKernelArgsStorage<4096ul>)")
    'AllReduce'
    >>> operation_of("ncclKernel_AllGather_RING_LL_Sum_int8_t(ncclWorkElem)"), operation_of("ncclDevKernel_Generic(x)")
    ('AllGather', 'other')
    """
    found = _OPERATION.search(name)
    return found[0] if found else _OTHER


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
