"""Dialects of trainers that a dialect file describes: a file `<name>.toml` here and its name in NAMES.

They serve as examples, too: `sweepscope dialect show NAME` prints one, and a user's own file of that name replaces it.
A trainer belongs here if docs/dialects.md can say all of what it prints; otherwise into `pipeline.logs.dialects`.
"""

from __future__ import annotations

import hashlib
from dataclasses import replace
from importlib.resources import files

from sweepscope.pipeline.logs.declared.compile import compile_document
from sweepscope.pipeline.logs.declared.document import read_document
from sweepscope.pipeline.logs.dialect import Dialect
from sweepscope.pipeline.logs.dialects.deepspeed import dialect as deepspeed

NAMES = (
    *("accelerate", "axlearn", "bmtrain", "detectron2", "diffusers", "espnet", "ezpz", "fairseq", "fms-fsdp"),
    *("icefall", "levanter", "lingua", "llama-cookbook", "minimind", "mmengine", "ms-swift", "olmo", "olmo-core"),
    *("open_lm", "paddlenlp", "paxml", "pytorch-examples", "sat", "sd-scripts", "timm", "ultralytics", "xtuner"),
    "yolov5",
)
ON_DEEPSPEED = ("mmengine", "sat")
"""Trainers that may run on DeepSpeed: what it prints counts for them, too, so that their own lines decide."""

_REVISION_BYTES = 6
"""Whole numbers of 48 bits are exact in a DOUBLE, too."""


def text_of(name: str) -> str:
    """The dialect file of that name."""
    return files(__name__).joinpath(f"{name}.toml").read_text(encoding="utf-8")


def read() -> tuple[Dialect, ...]:
    """The dialects in the order of NAMES. That takes about a millisecond each, so it is done when they are needed."""
    return tuple(_compiled(name, text_of(name)) for name in NAMES)


def _compiled(name: str, text: str) -> Dialect:
    revision = int.from_bytes(hashlib.sha256(text.encode()).digest()[:_REVISION_BYTES])
    document = read_document(text, f"{name}.toml", is_trusted=True)
    dialect = compile_document(document, revision=revision, is_declared=False)
    below = deepspeed.DIALECT.signature_literals if name in ON_DEEPSPEED else ()
    return replace(dialect, signature_literals=(*dialect.signature_literals, *below))
