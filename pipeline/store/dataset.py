"""The store as a folder that the Hugging Face Hub takes as a dataset: a Parquet file for each table, and its card.

Format of the card: huggingface.co/docs/hub/datasets-cards and .../datasets-manual-configuration: README.md, whose YAML
head names a configuration for each table with its files.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import duckdb
import yaml

from sweepscope.schemas.core.table import Table
from sweepscope.schemas.registry import ALL

_FIRST = ("runs", "steps", "best_configs")
_SIZES = (("n<1K", 1_000), ("1K<n<10K", 10_000), ("10K<n<100K", 100_000), ("100K<n<1M", 1_000_000))
_MANY = "1M<n<10M"
_ABOUT = (
    "Runs of LLM training sweeps, read from their logs by sweepscope. Unknown is null. Units are the suffixes of names "
    "(`_s`, `_bytes`); `mfu` and shares are in 0 to 1. `origin` tells measured, published and simulated rows apart. "
    "Texts of logs, names of hosts and paths are as they were logged: look through them before you publish."
)


def write_dataset(connection: duckdb.DuckDBPyConnection, folder: Path, *, origin: str | None = None) -> dict[str, int]:
    """Rows by table that were written to `folder`; tables without rows are left out.

    Args:
        connection: an opened store.
        folder: is made; files of the same names are replaced.
        origin: only its rows, of tables that name an origin or a run.
    """
    (folder / "data").mkdir(parents=True, exist_ok=True)
    there = {name for (name,) in connection.sql("SELECT table_name FROM information_schema.tables").fetchall()}
    written: dict[str, int] = {}
    for name, table in ALL.items():
        if name in there:
            condition = _of_origin(table) if origin else None
            where, given = (f"WHERE {condition}", {"origin": origin}) if condition else ("", {})
            frame = connection.sql(f"SELECT * FROM {name} {where}", params=given).pl()
            if frame.height:
                frame.write_parquet(folder / "data" / f"{name}.parquet")
                written[name] = frame.height
    (folder / "README.md").write_text(card(written, ALL), encoding="utf-8")
    return written


def _of_origin(table: Table) -> str | None:
    """Condition on the rows of one origin; None for a table that is of none."""
    names = {column.name for column in table.columns}
    if "origin" in names:
        return "origin = $origin"
    return "run_id IN (SELECT run_id FROM runs WHERE origin = $origin)" if "run_id" in names else None


def card(rows: Mapping[str, int], tables: Mapping[str, Table]) -> str:
    """The dataset's card: metadata for the Hub, then what each table holds.

    Licence and source are left to its publisher, and are not made up here.
    """
    order = sorted(rows, key=lambda name: (_FIRST.index(name) if name in _FIRST else len(_FIRST), name))
    configs = [{"config_name": name, "data_files": f"data/{name}.parquet"} for name in order]
    if configs:
        configs[0] = {**configs[0], "default": True}  # type: ignore[dict-item]  # the one value that is no text
    total = max(rows.values(), default=0)
    head: dict[str, Any] = {
        "pretty_name": "LLM training sweeps",
        "tags": ["llm-training", "parallelism", "performance", "sweepscope"],
        "size_categories": [next((label for label, limit in _SIZES if total < limit), _MANY)],
        "configs": configs,
    }
    listed = [f"| `{name}` | {rows[name]:,} | {tables[name].grain} |" for name in order]
    sections = [part for name in order for part in _section(tables[name])]
    return "\n".join(
        [
            "---",
            yaml.safe_dump(head, sort_keys=False).rstrip(),
            "---",
            "",
            "# LLM training sweeps",
            "",
            _ABOUT,
            "",
            "| table | rows | grain |",
            "|---|---|---|",
            *listed,
            "",
            *sections,
        ]
    )


def _section(table: Table) -> list[str]:
    columns = [f"| `{column.name}` | {column.unit or ''} | {_cell(column.description)} |" for column in table.columns]
    return [f"## {table.name}", "", table.description, "", "| column | unit | meaning |", "|---|---|---|", *columns, ""]


def _cell(text: str) -> str:
    return text.replace("|", "\\|")
