"""Stacks as text, without frames of the interpreter and the recorder, and the source line of interest."""

from __future__ import annotations

import re
from collections.abc import Sequence

from sweepscope.pipeline.memory.snapshot.snapshot import Frame

SHOWN_FRAMES = 8
_OPERATION = re.compile(r"torch::autograd::(?:generated::)?(\w+?Backward\d*|AccumulateGrad)\b|at::_ops::(\w+?)::")

# What PyTorch's own viewer leaves out as well: unwinding, the interpreter, the start of the program.
_MACHINERY = re.compile(
    r"torch::unwind|CapturedTraceback|gather_with_cpp|PyEval_|_PyEval|_PyFunction_|_PyObject_|PyObject_(?:Call|Vectorcall)"
    r"|_PyVectorcall|PyVectorcall_|PyCFunction|cfunction_|method_vectorcall|PyRun_|Py_RunMain|Py_BytesMain|pymain_"
    r"|^_start$|__libc_start|c10::cuda::CUDACachingAllocator|c10::impl::wrap_kernel|c10::ophandler|PyTuple_|slot_tp_call"
)
_LIBRARY = re.compile(r"/(?:site|dist)-packages/|/lib/python\d|<frozen|<string>|<eval_with_key>|torch/|importlib")


def without_machinery(frames: Sequence[Frame]) -> list[Frame]:
    """Frames without those of unwinding, the interpreter and the start of the program, innermost first."""
    return [frame for frame in frames if not _MACHINERY.search(frame.name)]


def source_line(frames: Sequence[Frame]) -> str | None:
    """The innermost line of the user's Python, else of any Python, else the operation; None without frames.

    A C++ stack names its operation by nodes of autograd's graph and operators; the outermost is the one that the
    program called.

    >>> source_line([Frame("at::empty", "??", 0), Frame("forward", "/run/model.py", 12)])
    '/run/model.py:12 forward'
    """
    python = [frame for frame in frames if frame.filename.endswith(".py")]
    user = (frame for frame in python if not _LIBRARY.search(frame.filename))
    chosen = next(user, None) or next(iter(python), None)
    if chosen:
        return frame_text(chosen)
    operations = [found for frame in frames if (found := _OPERATION.search(frame.name))]
    if operations:
        nodes = [found[1] for found in operations if found[1]]
        return nodes[-1] if nodes else operations[-1][2]
    return frame_text(frames[0]) if frames else None


def frame_text(frame: Frame) -> str:
    """One frame as text: file, line and function."""
    if frame.filename in ("", "??"):
        return _short(frame.name)
    location = f"{frame.filename}:{frame.line}" if frame.line else frame.filename
    return f"{location} {_short(frame.name)}"


def stack_text(frames: Sequence[Frame]) -> str | None:
    """The innermost frames, joined by ` < `: each was called by the next. None without frames."""
    return " < ".join(frame_text(frame) for frame in frames[:SHOWN_FRAMES]) or None


def _short(name: str) -> str:
    """A C++ signature without its arguments."""
    head = name.split("(", 1)[0] if "::" in name and not name.startswith("(") else name
    return (head or name)[:120]
