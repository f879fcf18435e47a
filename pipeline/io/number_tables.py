"""Tables of numbers in binary files as lines, a JSON object per row: Parquet, Arrow (Feather 2), NumPy's .npy and .npz.

Formats: the Parquet and Arrow specifications of Apache; numpy/lib/format.py. What a row's names mean is decided where
lines are read. Values that are missing are left out; so are columns of lists, objects and long texts, which no metric
is. An array without a counter beside it gets its positions, from 0 on, as `step`. Objects that NumPy would unpickle
are refused.
"""

from __future__ import annotations

import io
import json
import posixpath
import re
import zipfile
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from datetime import date, datetime
from typing import Any

import pyarrow as pa

from sweepscope.schemas import limits

SUFFIXES = (".parquet", ".feather", ".arrow", ".npy", ".npz")
_PARQUET, _ARROW, _NPY, _ZIP = b"PAR1", b"ARRO", b"\x93NUM", b"PK\3\4"
_ROWS = 1 << 16
_LEAST_CELLS = 4_000_000
_COUNTERS = ("step", "global_step", "iteration", "iter", "epoch")
_PLURAL = re.compile(r"(?i)(?:(loss)es|(step|epoch|iteration|iter|time|rate|norm)s)$")
"""How an array is named for all of its values; a row has one of them."""
_TEXT_CHARS = 200


def is_number_table(magic: bytes, path: str) -> bool:
    """Whether a file that begins with four such bytes is one of the formats; .npz also by its name.

    >>> [is_number_table(b"PK\\3\\4", name) for name in ("losses.npz", "results.xlsx")]
    [True, False]
    """
    return magic in (_PARQUET, _ARROW, _NPY) or (magic == _ZIP and path.lower().endswith(".npz"))


def lines_of_table(data: bytes, path: str) -> Iterator[bytes]:
    """Chunks of the rows of a table as lines. Raises ValueError for a damaged table, or one that has none."""
    try:
        for rows in _rows(data, posixpath.splitext(posixpath.basename(path))[0]):
            yield b"".join(_line(row) for row in rows)
    except (pa.ArrowException, zipfile.BadZipFile, OSError, EOFError, KeyError, MemoryError) as error:
        raise ValueError(
            f"it is damaged: {str(error).splitlines()[0] if str(error) else type(error).__name__}"
        ) from error


def _rows(data: bytes, stem: str) -> Iterator[Iterable[Mapping[str, Any]]]:
    if data.startswith(_PARQUET):
        return _rows_of_parquet(data)
    if data.startswith(_ARROW):
        return _rows_of_arrow(data)
    return iter([_rows_of_arrays(_arrays(data, stem))])


def _rows_of_parquet(data: bytes) -> Iterator[Iterable[Mapping[str, Any]]]:
    import pyarrow.parquet  # late: most ingests have none

    file = pyarrow.parquet.ParquetFile(io.BytesIO(data))
    names = _columns(file.schema_arrow)
    _check(file.metadata.num_rows * len(names), len(data))
    for batch in file.iter_batches(batch_size=_ROWS, columns=names):
        yield batch.to_pylist()


def _rows_of_arrow(data: bytes) -> Iterator[Iterable[Mapping[str, Any]]]:
    file = pa.ipc.open_file(pa.BufferReader(data))
    names, cells = _columns(file.schema), 0
    for number in range(file.num_record_batches):
        batch = file.get_batch(number)
        cells += batch.num_rows * len(names)
        _check(cells, len(data))
        yield batch.select(names).to_pylist()


def _columns(schema: pa.Schema) -> list[str]:
    """Columns whose values are numbers, times or texts; pandas's own index is none."""
    numbers = (pa.types.is_integer, pa.types.is_floating, pa.types.is_boolean, pa.types.is_decimal)
    others = (pa.types.is_temporal, pa.types.is_string, pa.types.is_large_string, pa.types.is_dictionary)
    of_value = [*numbers, *others]
    names = [field.name for field in schema if any(is_one(field.type) for is_one in of_value)]
    return [name for name in names if not name.startswith("__index_level_")]


def _check(cells: int, size: int) -> None:
    if cells > max(_LEAST_CELLS, limits.TABLE_CELLS_PER_BYTE * size):
        raise ValueError(f"it has more than {max(_LEAST_CELLS, limits.TABLE_CELLS_PER_BYTE * size):,} cells")


def _arrays(data: bytes, stem: str) -> dict[str, Any]:
    """Arrays by their name; a lone one has the file's."""
    import numpy as np

    if not data.startswith(_ZIP):
        return {stem: np.load(io.BytesIO(data), allow_pickle=False)}
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        if sum(info.file_size for info in archive.infolist()) > limits.WHOLE_BYTES:
            raise ValueError(f"it unpacks to more than {limits.WHOLE_BYTES >> 20} MiB")
    with np.load(io.BytesIO(data), allow_pickle=False) as found:
        return {name: found[name] for name in found.files}


def _rows_of_arrays(arrays: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """A record of the single values, and one for each position of the arrays of the length that most have."""
    columns: dict[str, Any] = {}
    for name, array in arrays.items():
        if array.dtype.names:  # of records
            columns |= {field: array[field] for field in array.dtype.names}
        elif array.ndim == 2 and array.shape[1] == 2 and len(arrays) == 1:
            columns |= {"step": array[:, 0], name: array[:, 1]}
        else:
            columns[name] = array
    columns = {name: array for name, array in columns.items() if array.dtype.kind in "iufb"}
    single = {name: array.item() for name, array in columns.items() if array.size == 1 and array.ndim <= 1}
    series = {name: array for name, array in columns.items() if array.ndim == 1 and array.size > 1}
    if not series:
        raise ValueError("it holds no series of numbers")
    height = Counter(array.size for array in series.values()).most_common(1)[0][0]
    kept = {_of_one(name): array.tolist() for name, array in series.items() if array.size == height}
    if not any(name.lower() in _COUNTERS for name in kept):
        kept = {"step": list(range(height)), **kept}
    if single:
        yield single
    for row in zip(*kept.values(), strict=True):
        yield dict(zip(kept, row, strict=True))


def _of_one(name: str) -> str:
    """The name of one value of an array.

    >>> _of_one("train_losses"), _of_one("steps"), _of_one("loss"), _of_one("tokens")
    ('train_loss', 'step', 'loss', 'tokens')
    """
    return _PLURAL.sub(lambda found: found[1] or found[2], name)


def _line(row: Mapping[str, Any]) -> bytes:
    values = {name: _plain(value) for name, value in row.items() if value is not None}
    shown = {name: value for name, value in values.items() if not isinstance(value, str) or len(value) <= _TEXT_CHARS}
    return json.dumps(shown).encode() + b"\n"


def _plain(value: object) -> object:
    """A value as JSON has it; a whole number that is kept as a fraction, as pandas does beside gaps, is whole."""
    if isinstance(value, datetime | date):
        return value.isoformat()
    if isinstance(value, float) and value.is_integer() and abs(value) < 2**53:
        return int(value)
    return value if isinstance(value, int | float | str) else str(value)
