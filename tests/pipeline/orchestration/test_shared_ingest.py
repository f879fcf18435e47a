"""Whole ingests with S3 at either end: run directories behind a URL, and a lake that two ingesters share."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Collection
from pathlib import Path

import polars as pl
import pytest

from sweepscope.pipeline.errors import InputError
from sweepscope.pipeline.io import remote
from sweepscope.pipeline.io.files import list_files
from sweepscope.pipeline.orchestration.run import ingest_paths
from sweepscope.pipeline.simulate.marker import MARKER_NAME
from sweepscope.pipeline.simulate.sweep import write_sweep
from sweepscope.pipeline.store.checksum import digest
from sweepscope.pipeline.store.home import Home
from sweepscope.pipeline.store.lake_location import VARIABLE
from sweepscope.pipeline.store.maintenance import verify
from sweepscope.pipeline.store.publish import publish
from sweepscope.pipeline.store.published import connect, current
from sweepscope.schemas.registry import TABLES
from tests.paths import ROOT
from tests.picotron_runs import picotron_run
from tests.s3_server import bucket, frozen_endpoint, s3_endpoint

__all__ = ["bucket", "s3_endpoint"]  # fixtures


def digests_of(home: Home, *, but: Collection[str] = ()) -> dict[str, str]:
    """By table, the digest of its rows without what names a batch."""
    connection = connect(current(home.path))
    try:
        found = {}
        for name, table in TABLES.items():
            if name not in but:
                source = f'SELECT * REPLACE (NULL AS batch_id) FROM "{name}"' if name == "files" else None
                found[name] = str(digest(connection, table, source))
        return found
    finally:
        connection.close()


def sweepscope(*words: str) -> subprocess.Popen[str]:
    command = [sys.executable, "-m", "sweepscope.pipeline", *words]
    return subprocess.Popen(command, cwd=ROOT, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)


def test_two_ingesters_share_a_lake_and_a_third_shows_it(
    bucket: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for half, seed in (("one", 4), ("two", 5)):
        write_sweep(tmp_path / "runs" / half, runs=4, seed=seed)
    alone = Home.resolve(str(tmp_path / "alone"))
    ingest_paths(alone, [str(tmp_path / "runs")], with_published=False)
    monkeypatch.setenv(VARIABLE, f"{bucket}/team")
    both = [
        sweepscope("ingest", str(tmp_path / "runs" / half), "--home", str(tmp_path / half), "--no-published")
        for half in ("one", "two")
    ]
    for one in both:
        _, text = one.communicate(timeout=280)
        assert one.returncode == 0, text
    shown = Home.resolve(str(tmp_path / "shown"))
    publish(shown)
    assert verify(shown).problems == ()
    assert digests_of(shown) == digests_of(alone)
    summary = ingest_paths(shown, [str(tmp_path / "runs")], with_published=False)
    assert summary.files_new == 0, "what another home has read is not read again"


def test_run_directories_behind_a_url_are_read_as_those_on_disk(bucket: str, tmp_path: Path) -> None:
    write_sweep(tmp_path / "runs", runs=4, seed=6)
    system, root = remote.file_system(f"{bucket}/runs")
    for path in (tmp_path / "runs" / MARKER_NAME, *(entry.path for entry in list_files(str(tmp_path / "runs")))):
        system.put_file(path, f"{root}/{Path(path).relative_to(tmp_path / 'runs')}")
    there, here = (Home.resolve(str(tmp_path / name)) for name in ("there", "here"))
    ingest_paths(there, [f"{bucket}/runs"], with_published=False)
    ingest_paths(here, [str(tmp_path / "runs")], with_published=False)
    read = [_figures(home) for home in (there, here)]
    assert read[0].equals(read[1])
    assert read[0].height >= 4
    assert set(read[0]["origin"]) == {"simulated"}
    new = picotron_run(tmp_path / "later")
    system.put(str(new), f"{root}/picotron-later", recursive=True)
    assert ingest_paths(there, [f"{bucket}/runs"], with_published=False).files_new > 0, "a listing was remembered"


def _figures(home: Home) -> pl.DataFrame:
    connection = connect(current(home.path))
    try:
        names = "origin, framework, dp, tp, pp, steps_logged, last_loss, tokens_per_s_per_gpu, mfu"
        return connection.sql(f"SELECT {names} FROM runs ORDER BY ALL").pl()
    finally:
        connection.close()


def test_a_frozen_endpoint_ends_with_its_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(remote, "READ_S", 0.5)
    with (
        frozen_endpoint() as endpoint,
        pytest.raises(InputError, match=rf"Cannot list s3://bucket/frozen: .*{endpoint}.*Check the URL, the endpoint"),
    ):
        ingest_paths(Home.resolve(str(tmp_path)), ["s3://bucket/frozen"], with_published=False)
