"""The view `nccl_findings` for tables that are in no store."""

from __future__ import annotations

from collections.abc import Mapping

import duckdb
import polars as pl

from sweepscope.pipeline.store.publish import VIEW_FOLDER, macros
from sweepscope.schemas.core import ddl
from sweepscope.schemas.registry import NCCL_TABLES, TABLES
from sweepscope.schemas.tables.nccl import NCCL_FINDINGS

_BESIDE = ("files", "runs")
"""Other tables of the view; empty here, so that findings that need a run's layout are missing."""


def nccl_findings(tables: Mapping[str, pl.DataFrame]) -> pl.DataFrame:
    """Rows of the view `nccl_findings` for the NCCL tables of some files."""
    with duckdb.connect(config={"enable_external_access": False}) as connection:
        for name in (*(table.name for table in NCCL_TABLES), *_BESIDE):
            connection.execute(ddl.create_table(TABLES[name]))
            frame = tables.get(name)
            if frame is not None and not frame.is_empty():
                connection.register("rows_to_insert", frame)
                connection.execute(f"INSERT INTO {name} BY NAME SELECT * FROM rows_to_insert")  # our own names
                connection.unregister("rows_to_insert")
        connection.execute(macros())
        connection.execute((VIEW_FOLDER / "nccl_findings.sql").read_text(encoding="utf-8"))
        found: pl.DataFrame = connection.sql("FROM nccl_findings ORDER BY source_path, nccl_rule, line_no").pl()
    return NCCL_FINDINGS.conform(found)
