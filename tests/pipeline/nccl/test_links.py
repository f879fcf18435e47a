"""Whose connections they are does not depend on how many are placed at once."""

from __future__ import annotations

import polars as pl
import pytest

from pipeline.nccl import links
from pipeline.nccl.transports import transport_of
from tests.pipeline.nccl.nccl_logs import VERSIONS, Job, render
from tests.pipeline.nccl.reading import tables_of


@pytest.mark.parametrize("version", VERSIONS)
def test_a_few_at_a_time_or_all_at_once(version: str, monkeypatch: pytest.MonkeyPatch) -> None:
    text = render(Job(version, nodes=2, gpus=2, per_node=True)).text()
    whole = tables_of(text)["nccl_links"]
    assert whole.drop_nulls("comm_index").height > 7
    monkeypatch.setattr(links, "_TOGETHER", 7)
    assert tables_of(text)["nccl_links"].sort(pl.all()).equals(whole.sort(pl.all()))


@pytest.mark.parametrize("via", ["SHM/direct/direct", "SHM/CE/direct", "SHM/direct", "SHM"])  # 2.30 says the third
def test_host_memory_in_every_spelling(via: str) -> None:
    assert transport_of(via) == (via, None)


def test_a_cut_transport_is_none() -> None:
    assert [transport_of(via) for via in ("SHM/dir", "SHM/direct/", "SHM/direct/dire", "P2P/CUM")] == [None] * 4
