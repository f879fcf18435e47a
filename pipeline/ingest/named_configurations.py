"""Configurations that the command in a log names, wherever they lie: `train.py --config configs/tp4.yaml`.

A run that was started from one of many configurations in a folder of their own has none beside its log. The name is
that of the machine on which it ran: it is looked for below the log's folder and those above it, an absolute one by its
last parts. A configuration that was changed after the log's last line says nothing of the run.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Iterator, Mapping, Sequence
from fnmatch import fnmatchcase

import polars as pl

from sweepscope.pipeline.errors import SweepscopeError
from sweepscope.pipeline.io.bounded import text_of
from sweepscope.pipeline.io.event_log import event
from sweepscope.pipeline.io.files import modified_at
from sweepscope.pipeline.io.reader import Reader
from sweepscope.pipeline.logs.dialect import Dialect
from sweepscope.pipeline.logs.facts import INFERRED
from sweepscope.pipeline.logs.inference.documents import settings_of_document
from sweepscope.pipeline.logs.sidecars.documents import document_values

_LOG = logging.getLogger(__name__)

SOURCE = "named_config"
"""Word of vocab.SETTING_SOURCE: less sure than an option of the command, which is there to overrule it."""

_NAMES = (
    *("config", "config_file", "config_path", "cfg", "cfg_file", "conf", "job.config_file", "yaml", "yaml_cfg"),
    *("deepspeed", "deepspeed_config", "hparams", "params", "args_file"),
)
_SUFFIXES = (".yaml", ".yml", ".json", ".toml", ".gin", ".py")
_MOST_FOLDERS = 5
"""From the log's own folder upwards."""
_MOST_PARTS = 3
"""Of an absolute name's end."""
_COPIED_WITHIN_S = 600.0
"""Of a log and a configuration that were copied together without their times."""


def settings_named(
    arguments: pl.DataFrame, sources: pl.DataFrame, configured: Iterable[str], dialects: Sequence[Dialect]
) -> tuple[list[dict[str, str]], list[dict[str, str]]]:
    """SIDECAR_SETTINGS rows of settings, and of what the configurations state under their own names.

    Args:
        arguments: SETTING_FACTS rows of the logs' arguments.
        sources: `source`, `path`, `unit`, `mtime` and `dialect` of the files.
        configured: units with a configuration of their own, which is surer.
        dialects: those to read with.
    """
    name = pl.col("name").str.replace_all("-", "_").str.to_lowercase()
    suffix = pl.col("value").str.to_lowercase().str.extract(r"(\.\w+)$")
    named = arguments.filter(name.is_in(_NAMES) & suffix.is_in(_SUFFIXES))
    if named.is_empty():
        return [], []
    rows = named.join(sources.select("source", "path", "unit", "mtime", "dialect"), on="source", maintain_order="left")
    rows = rows.filter(~pl.col("unit").is_in(list(configured))).unique(["unit", "value"], maintain_order=True)
    by_name = {dialect.name: dialect for dialect in dialects}
    settings, documents = [], []
    for path, unit, mtime, dialect, value in rows.select("path", "unit", "mtime", "dialect", "value").iter_rows():
        found = _found(path, value, mtime)
        text = _text(found) if found else None
        if not found or text is None:
            continue
        values = document_values(found, text)
        own = _settings(found, text, by_name.get(dialect)) or settings_of_document(values)
        shared = {"unit": unit, "path": found, "setting_source": SOURCE}
        settings += [{**shared, "name": key, "value": one} for key, one in own.items()]
        documents += [{**shared, "name": key, "value": one} for key, one in values]
    return settings, documents


def marked_as_read(files: pl.DataFrame, settings: pl.DataFrame, versions: Mapping[str, int]) -> pl.DataFrame:
    """`files` in which configurations that gave SIDECAR_SETTINGS rows are parsed, whatever their names promised."""
    used = settings.filter(setting_source=SOURCE)["path"].unique()
    is_read = pl.col("path").is_in(used.implode()) & (pl.col("status") == "skipped")
    changed: dict[str, str | int | None] = {"kind": "config", "status": "parsed", "error": None}
    changed |= {"parser": INFERRED, "parser_version": versions[INFERRED]}
    return files.with_columns(
        pl.when(is_read).then(pl.lit(value, files.schema[name])).otherwise(name).alias(name)
        for name, value in changed.items()
    )


def _settings(path: str, text: str, dialect: Dialect | None) -> dict[str, str]:
    """Settings by the readers of the log's own dialect, whatever they expect such files to be called."""
    suffix = path[path.rindex(".") :].lower()
    for sidecar in dialect.sidecars if dialect else ():
        if fnmatchcase(f"x{suffix}", f"*{sidecar.pattern[sidecar.pattern.rfind('.') :]}"):
            try:
                return dict(sidecar.read(text))
            except ValueError:
                continue
    return {}


def _found(log: str, value: str, log_mtime: float) -> str | None:
    """The file that a log names, if it was there when the log was written."""
    for path in _places(log, value):
        changed = modified_at(path)
        if changed is not None:
            return path if changed <= log_mtime + _COPIED_WITHIN_S else None
    return None


def _places(log: str, value: str) -> Iterator[str]:
    """Where a file may lie that a log names.

    >>> list(_places("/s/logs/a.log", "conf/a.yaml"))
    ['/s/logs/conf/a.yaml', '/s/conf/a.yaml', '/conf/a.yaml']
    >>> list(_places("/s/a.log", "/scratch/me/conf/a.yaml"))[:3]
    ['/s/me/conf/a.yaml', '/s/conf/a.yaml', '/s/a.yaml']
    """
    parts = [part for part in value.split("/") if part not in ("", ".", "..")]
    tails = [parts] if not value.startswith(("/", "~")) else [parts[at:] for at in range(-_MOST_PARTS, 0)]
    folder = log
    for _ in range(_MOST_FOLDERS):
        if "/" not in folder:
            return
        folder = folder.rpartition("/")[0]
        yield from ("/".join([folder, *tail]) for tail in tails if tail)


def _text(path: str) -> str | None:
    try:
        return text_of(Reader(path, is_hashed=False).chunks())
    except (SweepscopeError, ValueError) as error:
        event(_LOG, logging.WARNING, "named_configuration_unread", path=path, error=str(error)[:200])
        return None
