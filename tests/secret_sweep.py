"""A sweep whose logs and other files are full of made-up credentials, and a search for them in every byte of a home."""

from __future__ import annotations

import io
import json
import sqlite3
import zipfile
import zlib
from collections.abc import Iterable, Iterator
from pathlib import Path

import duckdb
import polars as pl

from tests.picotron_runs import picotron_run
from tests.secret_samples import Sample, samples

GROWING_BYTES = 1_200_000
"""Logs of a megabyte that were just written to are kept as records."""

SHORTEST = 8
"""So many characters of a credential in a row are a leak."""


def write_sweep(parent: Path, *, seed: int = 7) -> list[Sample]:
    """Write runs, a scheduler's table, NCCL output and configurations; the credentials in them."""
    given = samples(200, seed)
    wrapped = [sample for sample in given if "\n" not in sample.line]
    rank = "[default0]:[rank0]: "
    traces = "".join(f"{rank}RuntimeError: {sample.line}\n" for sample in wrapped)
    first = picotron_run(parent, name="dp2_tp1", tail=f"{rank}Traceback (most recent call last):\n{traces}")
    whole = "".join(f"{sample.line}\n" for sample in given)
    odd = "".join(f"[rank 0] Step: {sample.line} | Loss: 1.0 | Tokens/s: 5K | MFU: 1%\n" for sample in wrapped)
    nccl = "".join(f"n1:7:8 [0] NCCL WARN Call failed: {sample.line}\n" for sample in wrapped)
    nccl += "".join(f"n1:7:8 [0] NCCL INFO NCCL_NET_PLUGIN set by environment to {sample.line}\n" for sample in wrapped)
    watchdog = "".join(
        f"[rank1]: [E1] [PG 0 Rank 1] Watchdog caught collective operation timeout: WorkNCCL(SeqNum=3, "
        f"OpType=ALLREDUCE, NumelIn=1, NumelOut=1, Timeout(ms)=600000) ran for 600029 ms {sample.line}\n"
        for sample in wrapped[:20]
    )
    second = picotron_run(parent, name="dp1_tp2", dp=1, tp=2, job=1002, tail=whole + odd + nccl + watchdog)
    filler = "some line that no parser knows\n" * (GROWING_BYTES // 31)
    picotron_run(parent, name="dp4_tp1", dp=4, job=1003, status="running", tail=filler + traces + odd + nccl)
    config = json.loads((second / "config.json").read_text())
    secrets = {f"credential_{number}": sample.line for number, sample in enumerate(given)}
    config["environment"] = {**secrets, "HF_TOKEN": given[0].secret, "wandb_key": given[1].secret}
    config["model"]["name"] = f"https://trainer:{given[-1].secret}@host/model"
    (second / "config.json").write_text(json.dumps(config))
    (first / "status.txt").write_text(given[0].line)
    head = "JobID|JobName|State|ExitCode|Comment\n"
    (parent / "sacct.txt").write_text(
        head
        + "".join(
            f"{number}|{sample.line.replace('|', ' ')}|FAILED|1:0|{sample.line.replace('|', ' ')}\n"
            for number, sample in enumerate(wrapped, 5000)
        )
    )
    return [*given, Sample("aws_secret", "", given[0].secret)]


def leaks(found: Iterable[tuple[str, str]], given: list[Sample]) -> list[str]:
    """Places (name, text) that have a part of a credential, with its kind."""
    parts = {part: sample.kind for sample in given for part in _parts(sample.secret)}
    hits = []
    for name, text in found:
        # Any window of a credential, looked up by hashing the text's own windows.
        windows = {text[at : at + SHORTEST] for at in range(len(text) - SHORTEST + 1)}
        hits += [f"{name}: {parts[window]} ({window})" for window in windows & parts.keys()]
    return sorted(hits)


def texts_of(home: Path) -> Iterator[tuple[str, str]]:
    """Every file of a home as it lies there, and what its containers hold: (name, text)."""
    for path in sorted(home.rglob("*")):
        if not path.is_file() or path.is_symlink():
            continue
        name, data = str(path.relative_to(home)), path.read_bytes()
        yield name, data.decode("latin-1")
        if path.suffix == ".parquet":
            yield f"{name} (rows)", _rows(pl.read_parquet(path))
        elif path.suffix == ".zip":
            with zipfile.ZipFile(io.BytesIO(data)) as archive:
                for member in archive.namelist():
                    content = archive.read(member)
                    is_frame = member != "about.json"
                    yield f"{name}/{member}", _rows(pl.read_ipc(content)) if is_frame else content.decode()
        elif path.suffix == ".duckdb":
            yield f"{name} (rows)", _stored(path)
        elif data.startswith(b"SQLite format 3"):
            with sqlite3.connect(f"file:{path}?mode=ro", uri=True) as connection:
                yield f"{name} (rows)", "\n".join(connection.iterdump())
        elif path.suffix == ".gz":
            yield f"{name} (text)", zlib.decompress(data, 31).decode("latin-1")


def _rows(frame: pl.DataFrame) -> str:
    return "\n".join(repr(row) for row in frame.iter_rows())


def _stored(path: Path) -> str:
    with duckdb.connect(str(path), read_only=True) as connection:
        names = [row[0] for row in connection.execute("SELECT table_name FROM duckdb_tables()").fetchall()]
        names += [
            row[0] for row in connection.execute("SELECT view_name FROM duckdb_views() WHERE NOT internal").fetchall()
        ]
        return "\n".join(repr(row) for name in names for row in connection.execute(f'FROM "{name}"').fetchall())


def _parts(secret: str) -> Iterator[str]:
    plain = [part for part in secret.replace("\\n", "\n").split("\n") if len(part) >= SHORTEST]
    for part in plain:
        yield from (part[at : at + SHORTEST] for at in range(len(part) - SHORTEST + 1))
