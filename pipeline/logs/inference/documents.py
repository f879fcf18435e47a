"""Settings of a configuration that no reader knows: its values under the usual names, where they agree."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from sweepscope.pipeline.logs.inference.settings import choose
from sweepscope.pipeline.logs.inference.stated import DIMENSION, stated
from sweepscope.pipeline.logs.synonyms import words
from sweepscope.pipeline.reference.accelerators import canonical_accelerator

_LEAST = 2
"""Settings that make a configuration one of a training: one alone may be anything's."""

_OF_SECTION = re.compile(r"(?i)name|size|type|dim|degree|len(?:gth)?|count|num|world_size|stage")
"""Names that mean something together with their section's only: `model.name`, `tensor_parallel.size`."""

_OF_BATCH = re.compile(r"(?i)micro|global|train|per_?(?:gpu|device)|device|local")
"""Which batch a section of that name states: `batch.micro`."""

_PLAIN = re.compile(r"[\w./-]+")

_CARD = re.compile(r"(?:^| )(?:gpus?|accelerators?|cards?|devices?|hardware|chips?)(?: |$)")
"""In the names of values that are cards: `hardware.gpu: NVIDIA H100 80GB HBM3`."""
_CARDS = re.compile(r"(\d{1,6}) ?[x×*] ?(?=[A-Za-z])")
"""How many of them there are: `32 x MI300X`."""
_OF_NODE = re.compile(r"([A-Za-z][\w-]*):(\d{1,2})")
"""Cards that each node of a task has, as SkyPilot has them (its YAML reference): `accelerators: H100:8`."""
_OF_JOB = (
    ("cluster", re.compile(r"(?:slurm )?cluster(?: name)?"), re.compile(r"[A-Za-z][\w.-]*")),
    ("job_id", re.compile(r"(?:(?:slurm|pbs|ls[bf]|flux|scheduler|batch) )?job ?id"), re.compile(r"\d{3,}(?:_\d+)?")),
)
"""Column, name and value of what a configuration states of the job. In a log, such words mean many things."""


def settings_of_document(values: Iterable[tuple[str, str]]) -> dict[str, str]:
    """Values by column of `runs`; none where fewer than two settings of a training are stated.

    Args:
        values: dotted names and values (`sidecars.documents.document_values`).

    >>> settings_of_document([("parallel.tp", "2"), ("data.seq_len", "4096"), ("model.name", "tiny-3b"), ("seed", "1")])
    {'tp': '2', 'seq_len': '4096', 'model': 'tiny-3b'}
    >>> settings_of_document([("port", "8080"), ("model.name", "tiny-3b")])
    {}
    >>> settings_of_document([("mesh.data", "4"), ("mesh.tensor", "2"), ("train.seq", "2048"), ("train.mbs", "8")])
    {'seq_len': '2048', 'mbs': '8', 'dp': '4', 'tp': '2'}
    >>> settings_of_document([("tp", "2"), ("mbs", "1"), ("hw.gpu", "NVIDIA H100 80GB HBM3"), ("slurm.job_id", "7712")])
    {'tp': '2', 'mbs': '1', 'accelerator': 'H100-SXM-80GB', 'job_id': '7712'}
    """
    pairs = list(values)
    found = choose(stated(enumerate(_lines(pairs), 1)))
    settings = {one.column: one.value for one in found if one.is_used and one.column != "epochs"}
    return settings | dict(_of_job(pairs)) | _of_ray(pairs) if len(settings) >= _LEAST else {}


def _of_ray(values: Iterable[tuple[str, str]]) -> dict[str, str]:
    """`num_gpus` of Ray Train's ScalingConfig (ray/air/config.py): a worker has one card unless it asks for others.

    >>> _of_ray([("scaling_config.num_workers", "16"), ("scaling_config.use_gpu", "True")])
    {'num_gpus': '16'}
    >>> _of_ray([("loader.num_workers", "16")])
    {}
    """
    found = {name.partition("scaling_config.")[2]: value for name, value in values if "scaling_config." in f".{name}"}
    gpus = found.get("resources_per_worker.GPU", "1" if found.get("use_gpu") == "True" else "0")
    workers = found.get("num_workers", "")
    if not (workers.isdigit() and gpus.isdigit() and int(gpus)):
        return {}
    return {"num_gpus": str(int(workers) * int(gpus))}


def _of_job(values: Iterable[tuple[str, str]]) -> Iterator[tuple[str, str]]:
    """Columns and values of what a job ran as and on, where all values of a column agree."""
    found: dict[str, set[str]] = {}
    for name, value in values:
        *sections, last = name.split(".")
        near = words(" ".join([*sections[-1:], last]) if last in ("id", "name") else last)
        count = _CARDS.match(value)
        if last == "accelerators" and (each := _OF_NODE.fullmatch(value)) and (card := canonical_accelerator(each[1])):
            found.setdefault("accelerator", set()).add(card)
            found.setdefault("gpus_per_node", set()).add(each[2])
        if _CARD.search(words(last)) and (card := canonical_accelerator(value[count.end() if count else 0 :])):
            found.setdefault("accelerator", set()).add(card)
            if count:
                found.setdefault("gpus_per_node" if "node" in words(last) else "num_gpus", set()).add(count[1])
        for column, names, form in _OF_JOB:
            if names.fullmatch(near) and form.fullmatch(value):
                found.setdefault(column, set()).add(value)
    yield from ((column, ones.pop()) for column, ones in found.items() if len(ones) == 1)


def _lines(values: Iterable[tuple[str, str]]) -> Iterator[str]:
    meshes: dict[str, list[str]] = {}
    for name, value in values:
        if not _PLAIN.fullmatch(value):
            continue
        yield f"{name} = {value}"
        section, _, last = name.rpartition(".")
        if section and _OF_BATCH.fullmatch(last) and words(section.rpartition(".")[2]) == "batch":
            yield f"{last}_batch = {value}"
        if section and _OF_SECTION.fullmatch(last):
            yield f"{section.rpartition('.')[2]}_{last} = {value}"
        if section and DIMENSION.fullmatch(last):
            meshes.setdefault(section, []).append(f"{last}={value}")
    yield from (" ".join(sizes) for sizes in meshes.values())
