"""Tables of numbers in binary files, as lines."""

from __future__ import annotations

import io
import json
from pathlib import Path

import numpy as np
import polars as pl
import pytest

from sweepscope.pipeline.errors import InputError
from sweepscope.pipeline.io.reader import Reader

STEPS = pl.DataFrame(
    {"step": [1, 2, 3], "loss": [2.5, None, 2.25], "tokens": [10.0, 20.0, 30.0], "layers": [[1], [2], [3]]}
)
ROWS = [{"step": 1, "loss": 2.5, "tokens": 10}, {"step": 2, "tokens": 20}, {"step": 3, "loss": 2.25, "tokens": 30}]


def rows(path: Path) -> list[dict[str, object]]:
    return [json.loads(line) for line in b"".join(Reader(str(path)).chunks()).splitlines()]


def test_rows_of_parquet_and_arrow(tmp_path: Path) -> None:
    STEPS.write_parquet(tmp_path / "metrics.parquet")
    STEPS.write_ipc(tmp_path / "metrics.feather", compression="lz4")
    assert rows(tmp_path / "metrics.parquet") == rows(tmp_path / "metrics.feather") == ROWS


def test_a_lone_array_is_numbered(tmp_path: Path) -> None:
    np.save(tmp_path / "train_losses.npy", np.array([2.5, 2.25]))
    assert rows(tmp_path / "train_losses.npy") == [{"step": 0, "train_loss": 2.5}, {"step": 1, "train_loss": 2.25}]


def test_pairs_are_of_a_step_and_a_value(tmp_path: Path) -> None:
    np.save(tmp_path / "loss.npy", np.array([[10.0, 2.5], [20.0, 2.25]]))
    assert rows(tmp_path / "loss.npy") == [{"step": 10, "loss": 2.5}, {"step": 20, "loss": 2.25}]


def test_arrays_of_one_length_are_rows_and_single_values_a_record(tmp_path: Path) -> None:
    np.savez_compressed(tmp_path / "history.npz", steps=[5, 10], losses=[2.5, 2.25], lr=0.1, matrix=np.ones((2, 2)))
    assert rows(tmp_path / "history.npz") == [{"lr": 0.1}, {"step": 5, "loss": 2.5}, {"step": 10, "loss": 2.25}]


def test_objects_are_not_unpickled(tmp_path: Path) -> None:
    np.save(tmp_path / "loss.npy", np.array([{"a": 1}], dtype=object), allow_pickle=True)
    with pytest.raises(InputError, match="Object arrays cannot be loaded"):
        rows(tmp_path / "loss.npy")


def test_an_array_without_a_series_says_so(tmp_path: Path) -> None:
    np.save(tmp_path / "loss.npy", np.ones((4, 4)))
    with pytest.raises(InputError, match="no series of numbers"):
        rows(tmp_path / "loss.npy")


@pytest.mark.parametrize("name", ["metrics.parquet", "metrics.arrow", "loss.npy", "history.npz"])
@pytest.mark.parametrize("kept", [4, 60, 200])
def test_a_damaged_table_is_rejected(tmp_path: Path, name: str, kept: int) -> None:
    out = io.BytesIO()
    if name.endswith(".parquet"):
        STEPS.write_parquet(out)
    elif name.endswith(".arrow"):
        STEPS.write_ipc(out)
    elif name.endswith(".npy"):
        np.save(out, np.arange(100.0))
    else:
        np.savez(out, loss=np.arange(100.0))
    (tmp_path / name).write_bytes(out.getvalue()[:kept])
    with pytest.raises(InputError):
        rows(tmp_path / name)


def test_rows_that_unpack_too_far_are_refused(tmp_path: Path) -> None:
    pl.DataFrame({"loss": pl.zeros(5_000_000, eager=True)}).write_parquet(tmp_path / "loss.parquet")
    with pytest.raises(InputError, match="more than 4,000,000 cells"):
        rows(tmp_path / "loss.parquet")


def test_a_table_that_grew_begins_with_what_was_known(tmp_path: Path) -> None:
    path = tmp_path / "metrics.parquet"
    STEPS[:2].write_parquet(path)
    first = Reader(str(path))
    list(first.chunks())
    known = first.content
    assert known is not None
    STEPS.write_parquet(path)
    assert Reader(str(path)).begins_with(known.size, known.digest)
    STEPS[1:].write_parquet(path)
    assert not Reader(str(path)).begins_with(known.size, known.digest)
