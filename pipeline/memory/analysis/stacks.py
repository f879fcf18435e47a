"""Stacks in words: without the recorder's own frames, with the line that a reader would look at first."""

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


def shown(frames: Sequence[Frame]) -> list[Frame]:
    """Frames without machinery, innermost first."""
    return [frame for frame in frames if not _MACHINERY.search(frame.name)]


def source_line(frames: Sequence[Frame]) -> str | None:
    """The innermost line of the user's own Python, else of any Python, else the operation; None without frames.

    C++ stacks say which operation they belong to by the nodes of autograd's graph and the operators they go through;
    the outermost of these is the one that the program asked for.

    >>> source_line([Frame("at::empty", "??", 0), Frame("forward", "/run/model.py", 12)])
    '/run/model.py:12 forward'
    """
    python = [frame for frame in frames if frame.filename.endswith(".py")]
    own = (frame for frame in python if not _LIBRARY.search(frame.filename))
    chosen = next(own, None) or next(iter(python), None)
    if chosen:
        return described(chosen)
    operations = [found for frame in frames if (found := _OPERATION.search(frame.name))]
    if operations:
        nodes = [found[1] for found in operations if found[1]]
        return nodes[-1] if nodes else operations[-1][2]
    return described(frames[0]) if frames else None


def described(frame: Frame) -> str:
    """One frame in one text: the place, then the function."""
    if frame.filename in ("", "??"):
        return _short(frame.name)
    place = f"{frame.filename}:{frame.line}" if frame.line else frame.filename
    return f"{place} {_short(frame.name)}"


def in_words(frames: Sequence[Frame]) -> str | None:
    """The innermost frames, joined by ` < `: each was called by the next. None without frames."""
    return " < ".join(described(frame) for frame in frames[:SHOWN_FRAMES]) or None


def _short(name: str) -> str:
    """A C++ signature without its arguments."""
    head = name.split("(", 1)[0] if "::" in name and not name.startswith("(") else name
    return (head or name)[:120]
