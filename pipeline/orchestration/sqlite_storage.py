"""Dagster's records in SQLite, over connections that stay open.

Dagster connects anew for each of the two hundred events of a run: the statement cache of SQLAlchemy starts empty each
time, and closing the only connection makes SQLite write its log back and wait for the disk. That was half of a small
ingest. The files and tables are Dagster's own: other processes read and write them as ever.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import sqlalchemy as sa
from dagster._config import StringSource, UserConfigSchema
from dagster._core.storage.base_storage import DagsterStorage
from dagster._core.storage.event_log.sqlite.sqlite_event_log import INDEX_SHARD_NAME, SqliteEventLogStorage
from dagster._core.storage.runs.sqlite.sqlite_run_storage import SqliteRunStorage
from dagster._core.storage.schedules.sqlite.sqlite_schedule_storage import SqliteScheduleStorage
from dagster._core.storage.sqlite import SQLITE_BUSY_TIMEOUT_SECONDS
from dagster._core.storage.sqlite_storage import DagsterSqliteStorage
from dagster._serdes import ConfigurableClassData


def _engine(url: str) -> sa.Engine:
    """An engine whose connections wait for locks, and for the disk only where SQLite writes its log back.

    With a write-ahead log that keeps the file whole; a power cut may lose the last events of a run, which is lost then
    in any case (https://sqlite.org/pragma.html#pragma_synchronous).
    """
    engine = sa.create_engine(url, connect_args={"timeout": SQLITE_BUSY_TIMEOUT_SECONDS})

    @sa.event.listens_for(engine, "connect")
    def _relax(connection: Any, _record: object) -> None:
        connection.execute("PRAGMA synchronous = NORMAL")

    return engine


class OpenEventLog(SqliteEventLogStorage):
    """Events, in a file per run beside an index: two files stay open, the index and that of the last run."""

    def __init__(self, base_dir: str) -> None:
        self._engines: dict[str, sa.Engine] = {}
        self._found_tables: set[str] = set()
        super().__init__(base_dir)

    @contextmanager
    def _connect(self, shard: str) -> Iterator[sa.Connection]:
        with self._db_lock:
            if shard not in self._engines:
                for other in self._engines.keys() - {INDEX_SHARD_NAME}:
                    self._engines.pop(other).dispose()
                self._engines[shard] = _engine(self.conn_string_for_shard(shard))
            engine = self._engines[shard]
            if shard not in self._initialized_dbs:
                self._initdb(engine)
                self._initialized_dbs.add(shard)
            with engine.begin() as connection:
                yield connection

    def has_table(self, table_name: str) -> bool:
        """Whether the index has a table; asked anew for each event about a check."""
        if table_name not in self._found_tables and super().has_table(table_name):
            self._found_tables.add(table_name)
        return table_name in self._found_tables

    def dispose(self) -> None:
        """Close the files."""
        while self._engines:
            self._engines.popitem()[1].dispose()
        super().dispose()


class OpenRuns(SqliteRunStorage):
    """Runs and their tags, in a file that stays open."""

    def __init__(self, conn_string: str, inst_data: ConfigurableClassData | None = None) -> None:
        self._engine = _engine(conn_string)
        super().__init__(conn_string, inst_data)

    @contextmanager
    def connect(self) -> Iterator[sa.Connection]:
        """A transaction."""
        with self._engine.begin() as connection:
            yield connection

    def dispose(self) -> None:
        """Close the file."""
        self._engine.dispose()
        super().dispose()


class OpenSqliteStorage(DagsterSqliteStorage):
    """All three kinds of records; schedules, which no run in this process touches, as Dagster keeps them."""

    def __init__(self, base_dir: str, inst_data: ConfigurableClassData | None = None) -> None:
        history = Path(base_dir) / "history"  # Dagster's folders; its own constructor would open all files a first time
        self.base_dir = base_dir
        self._inst_data = inst_data
        self._run_storage = OpenRuns.from_local(str(history))
        self._event_log_storage = OpenEventLog(str(history / "runs"))
        self._schedule_storage = SqliteScheduleStorage.from_local(str(Path(base_dir) / "schedules"))
        DagsterStorage.__init__(self)  # type: ignore[arg-type,no-untyped-call]  # Dagster annotates it in part only

    @classmethod
    def config_type(cls) -> UserConfigSchema:
        """The folder, as for Dagster's own."""
        return {"base_dir": StringSource}

    @classmethod
    def from_config_value(cls, inst_data: ConfigurableClassData, config_value: Any) -> OpenSqliteStorage:
        """As Dagster makes it from its settings."""
        return cls(inst_data=inst_data, **config_value)
