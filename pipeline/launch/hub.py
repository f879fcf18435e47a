"""Names of models on the Hugging Face hub, where a framework looks its tokenizer or its configuration up."""

from __future__ import annotations

from sweepscope.pipeline.reference.models import find_model

_HOST = "https://huggingface.co/"


def hub_name(model: str) -> str:
    """`owner/name` of a known model whose source is the hub; the name itself of any other.

    >>> hub_name("Llama 2 7B"), hub_name("ours-3b")
    ('meta-llama/Llama-2-7b-hf', 'ours-3b')
    """
    row = find_model(model)
    source = str(row["source_url"] or "") if row is not None else ""
    name = "/".join(source.removeprefix(_HOST).split("/")[:2]) if source.startswith(_HOST) else ""
    return name if name.count("/") == 1 else model
