"""Snapshots in their containers: bare (pickle, JSON), in a zip of torch.save, or as base64 in the viewer's HTML.

Runs in the sandbox: archives and pages are as little trusted as their contents.
"""

from __future__ import annotations

import base64
import binascii
import itertools
import re
from collections.abc import Iterable, Iterator

from sweepscope.pipeline.io.safe_pickle import is_pickle
from sweepscope.pipeline.memory.snapshot.checked_values import RefusedError
from sweepscope.pipeline.memory.snapshot.json_snapshot import is_json_snapshot

NO_SNAPSHOT = "a page without an embedded snapshot"

_PIECE_BYTES = 1 << 20
_HEAD_BYTES = 1 << 16
_ZIP = b"PK\x03\x04"
_BOMB_BYTES, _BOMB_RATIO = 64 << 20, 200  # snapshots compress 10 to 40 times; torch.save does not compress
# What torch/cuda/_memory_viz.py writes: const local_files = [{"name": "snapshot.pickle", "base64": "gASV..."}]
_EMBEDDED = re.compile(rb'"base64"\s*:\s*"')
_PICTURE = re.compile(rb"data:image/png;base64")


def snapshot_chunks(chunks: Iterable[bytes]) -> Iterator[bytes]:
    """The bytes of the snapshot in a file, in pieces.

    Raises:
        RefusedError: the file is none of the containers, or is damaged.
    """
    stream = iter(chunks)
    head = b""
    while len(head) < _HEAD_BYTES and (chunk := next(stream, b"")):
        head += chunk
    whole = itertools.chain([head], stream)
    if is_pickle(head) or is_json_snapshot(head):
        return whole
    if head.startswith(_ZIP):
        return _from_zip(whole)
    if b"<html" in head[:1024].lower() or b"<script" in head.lower():
        return _from_html(whole)
    if not head:
        raise RefusedError("the file is empty")
    raise RefusedError("not a pickle of protocol 2 to 5, a zip of torch.save or a page of the memory viewer")


def _from_zip(chunks: Iterator[bytes]) -> Iterator[bytes]:
    """`data.pkl` of an archive that torch.save wrote; its directory is at the end, hence the copy on disk."""
    import tempfile  # both take a fifth of the child's start, for a container that few files have
    import zipfile

    with tempfile.TemporaryFile() as copy:
        for chunk in chunks:
            copy.write(chunk)
        try:
            with zipfile.ZipFile(copy) as archive:
                name = next((n for n in archive.namelist() if n == "data.pkl" or n.endswith("/data.pkl")), None)
                if name is None:
                    raise RefusedError("a zip without the data.pkl of torch.save")
                entry = archive.getinfo(name)
                if entry.file_size > _BOMB_BYTES and entry.file_size > _BOMB_RATIO * entry.compress_size:
                    raise RefusedError(f"a zip whose {name[-80:]} unpacks to {entry.file_size:,} bytes, a bomb")
                with archive.open(entry) as member:
                    while piece := member.read(_PIECE_BYTES):
                        yield piece
        # zipfile raises each of these: an unknown method, a cut member, a bad offset, a member under a password.
        except (zipfile.BadZipFile, NotImplementedError, EOFError, OSError, RuntimeError) as error:
            raise RefusedError(f"a damaged zip: {error}") from error


def _from_html(chunks: Iterator[bytes]) -> Iterator[bytes]:
    """The first embedded file of a page. A page of the profiler's memory timeline holds a picture and no numbers."""
    buffer = b""
    for chunk in chunks:
        buffer += chunk
        if found := _EMBEDDED.search(buffer):
            yield from _decoded(itertools.chain([buffer[found.end() :]], chunks))
            return
        if _PICTURE.search(buffer):
            raise RefusedError("the page holds a picture only; export the memory timeline as .json or .raw.json.gz")
        buffer = buffer[-64:] if len(buffer) > _HEAD_BYTES else buffer
    raise RefusedError(NO_SNAPSHOT)


def _decoded(chunks: Iterable[bytes]) -> Iterator[bytes]:
    """Bytes of base64 text up to its closing quote."""
    buffer = b""
    for chunk in chunks:
        text, quote, _ = chunk.partition(b'"')
        buffer += text
        whole = len(buffer) - len(buffer) % 4
        try:
            yield base64.b64decode(buffer[:whole], validate=True)
        except binascii.Error as error:
            raise RefusedError(f"damaged base64: {error}") from error
        buffer = buffer[whole:]
        if quote:
            if buffer:
                raise RefusedError("damaged base64: its length is not a multiple of four")
            return
    raise RefusedError("the page ends inside the embedded snapshot")
