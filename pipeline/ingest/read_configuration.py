"""Read the configurations that accompany logs: those of known trainers, and anybody's under the usual names."""

from __future__ import annotations

import fnmatch
from collections.abc import Sequence

from sweepscope.pipeline.ingest.accumulator import BatchAccumulator
from sweepscope.pipeline.ingest.file_kinds import file_kind
from sweepscope.pipeline.io.bounded import text_of
from sweepscope.pipeline.io.reader import Reader
from sweepscope.pipeline.logs.dialect import Dialect
from sweepscope.pipeline.logs.facts import INFERRED
from sweepscope.pipeline.logs.inference.documents import settings_of_document
from sweepscope.pipeline.logs.sidecars.documents import document_values, is_script

_PLAIN_NAMES = (
    "config",
    "configuration",
    "args",
    "arguments",
    "params",
    "hparams",
    "settings",
    "options",
    "exp",
    "run",
)
"""Of configurations, whatever has written them."""


def read_sidecar(row: dict[str, object], reader: Reader, batch: BatchAccumulator) -> dict[str, object]:
    """Ledger columns of a configuration or a status, whose settings hold for the whole unit."""
    text, unit = text_of(reader.chunks()), str(row["unit"])
    is_guess = file_kind(reader.path.rpartition("/")[2], batch.dialects) == "other"
    values = document_values(reader.path, text)
    own: dict[str, str] = {}
    try:
        parser, settings = settings_beside(reader.path, text, batch.dialects)
    except ValueError:
        parser, settings, own = INFERRED, {}, settings_of_document(values)
        if not own and is_guess:
            return {"kind": "other", "status": "skipped", "error": "no configuration of a training"}
        if not own and (values or is_script(reader.path)) and not _has_reader(reader.path, batch.dialects):
            return {"status": "skipped", "error": "no settings of a training in it, under names that are known"}
        if not own:
            raise
    batch.add_settings(unit, reader.path, settings)
    batch.add_own_settings(unit, reader.path, own if settings or own else settings_of_document(values))
    batch.add_document(unit, reader.path, values)
    return {"parser": parser}


def _has_reader(path: str, dialects: Sequence[Dialect]) -> bool:
    """Whether a dialect names such files as its own: what it cannot read is damaged. A `config.json` is anybody's."""
    name = path.rsplit("/", 1)[-1].lower()
    if name.split(".", 1)[0] in _PLAIN_NAMES:
        return False
    return any(fnmatch.fnmatch(name, sidecar.pattern) for dialect in dialects for sidecar in dialect.sidecars)


def settings_beside(path: str, text: str, dialects: Sequence[Dialect]) -> tuple[str, dict[str, str]]:
    """Dialect name and settings of the first sidecar reader that accepts the text.

    Raises ValueError when none does, with the last reader's reason.
    """
    name, reason = path.rsplit("/", 1)[-1].lower(), "no reader for this file"
    for dialect in dialects:
        for sidecar in dialect.sidecars:
            if fnmatch.fnmatch(name, sidecar.pattern):
                try:
                    settings = dict(sidecar.read(text))
                except ValueError as error:
                    reason = str(error)
                    continue
                if sidecar.has_users_names:
                    settings = settings_of_document(document_values(path, text)) | settings
                return dialect.name, settings
    raise ValueError(reason)
