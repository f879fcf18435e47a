"""Attacks that are cheap to write: each is refused with a reason, or read, without what it is after."""

from __future__ import annotations

import base64
import io
import pickle
import struct
import time
import zipfile
from typing import Any

import pytest

from sweepscope.pipeline.memory.analysis.analyse import analyse
from sweepscope.pipeline.memory.snapshot.checked_values import RefusedError
from sweepscope.pipeline.memory.snapshot.containers import snapshot_chunks
from sweepscope.pipeline.memory.snapshot.snapshot import read_snapshot

P4, P5 = b"\x80\x04", b"\x80\x05"
MEBI = 1 << 20


def text(value: str) -> bytes:
    return b"X" + struct.pack("<I", len(value)) + value.encode()


def get(index: int) -> bytes:
    return b"j" + struct.pack("<I", index)


def page(snapshot: bytes) -> bytes:
    return b'<!DOCTYPE html><script>const local_files = [{"name": "s", "base64": "%b"}]</script>' % snapshot


def archive(*files: tuple[str, bytes]) -> bytes:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as packed:
        for name, data in files:
            packed.writestr(name, data)
    return out.getvalue()


def rows_of(data: bytes) -> dict[str, Any]:
    return analyse(snapshot_chunks(data[at : at + MEBI] for at in range(0, len(data), MEBI)))


REFUSED: dict[str, tuple[bytes, str]] = {
    "an integer of two gigabytes": (P4 + b"\x8b" + struct.pack("<i", 2**31 - 1) + b".", "0x8b"),
    "an integer of negative length": (P4 + b"\x8b" + struct.pack("<i", -5) + b".", "0x8b"),
    "a decimal number of a million digits": (b"\x80\x02L" + b"9" * 1_000_000 + b"L\n.", "0x4c"),
    "memory from outside": (P5 + b"\x97\x98.", "NEXT_BUFFER"),
    "a terabyte of bytes": (P5 + b"\x96" + struct.pack("<Q", 1 << 40) + b".", "0x96"),
    "an outside object": (b"\x80\x02Pabc\n.", "PERSID"),
    "an extension code": (P4 + b"\x84\x01\0\0\0.", "EXT4"),
    "a slot of the memo written again and again": (P4 + b"]" + b"q\x00" * 1000 + b".", "written twice"),
    "values that no container takes": (P4 + b"]\x94" + b"h\x00" * (2 * MEBI) + b".", "belong to nothing"),
    "a list in itself by way of the memo": (P4 + b"}\x94(" + text("segments") + b"]\x94h\x00au.", "not an integer"),
    "a trace that holds itself": (
        P4 + b"}(" + text("segments") + b"]" + text("device_traces") + b"]\x94h\x00au.",
        "not a dict",
    ),
    "zeros behind the end": (P4 + b"]." + b"\0" * MEBI, "behind STOP"),
    "a second pickle behind the first": (P4 + b"]." + P4 + b"cos\nsystem\n.", "behind STOP"),
    "code in a page": (page(base64.b64encode(P4 + b"cos\nsystem\n.")), "imports code"),
    "a page of something else than base64": (page(b"!!!!"), "damaged base64"),
    "code in an archive": (archive(("a/data.pkl", P4 + b"cos\nsystem\n.")), "imports code"),
    "an archive that unpacks to a thousand times its size": (
        archive(("a/data.pkl", P4 + b"](" + b"N" * (80 * MEBI) + b"e.")),
        "a bomb",
    ),
    "an archive in an archive": (archive(("a/data.pkl", archive(("b/data.pkl", P4 + b"].")))), "not a pickle"),
    "an archive that is cut": (archive(("a/data.pkl", P4 + b"]."))[:40], "damaged zip"),
}


@pytest.mark.parametrize("what", REFUSED)
def test_an_attack_is_refused_with_its_reason_and_soon(what: str) -> None:
    data, reason = REFUSED[what]
    begin = time.process_time()
    with pytest.raises(RefusedError, match=reason):
        rows_of(data)
    assert time.process_time() - begin < 10


def test_an_archive_writes_nothing_outside(tmp_path: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert rows_of(archive(("../../evil/data.pkl", pickle.dumps([]))))["memory_snapshots"] == []
    assert list(tmp_path.iterdir()) == []


def traced(events: list[dict[str, Any]]) -> dict[str, Any]:
    begin = time.process_time()
    rows = rows_of(pickle.dumps({"segments": [], "device_traces": [events]}, 4))
    assert time.process_time() - begin < 10
    return rows


def test_ten_thousand_words_of_the_user_are_told_in_rows_of_bounded_number() -> None:
    allocs = [
        {"action": "alloc", "addr": at, "size": 1, "stream": 0, "user_metadata": f"{at}" * 40} for at in range(10_000)
    ]
    rows = traced(allocs)
    assert rows["memory_snapshots"][0]["events"] == 10_000
    assert len(rows["memory_at_peak"]) <= 1_001


def test_a_thousand_unknown_actions_are_told_in_one_line() -> None:
    rows = traced([{"action": f"a{at}" + "x" * 99, "addr": at, "size": 1, "stream": 0} for at in range(1_000)])
    assert "others (900)" in rows["memory_snapshots"][0]["warnings"]
    assert len(rows["memory_snapshots"][0]["warnings"]) < 2_000


def test_a_stack_of_a_hundred_thousand_frames_is_cut() -> None:
    frames = [{"name": "forward", "filename": "a.py", "line": 1}] * 100_000
    (row,) = traced([{"action": "alloc", "addr": 1, "size": 1, "stream": 0, "frames": frames}])["memory_at_peak"]
    assert row["frame"] == "a.py:1 forward"


WORDS = ["", "short", "a longer word than fifteen bytes", "é" * 9, "x" * 255, "y" * 256, "q\N{EM DASH}"]  # e2 80 94


@pytest.mark.parametrize("word", WORDS)
@pytest.mark.parametrize("protocol", [2, 4])
def test_words_of_any_length_stand_where_they_belong(word: str, protocol: int) -> None:
    """Every event has its text in full, as new strings have."""
    words = [f"{word}{at % 7}" for at in range(60)]
    events = [
        {"action": "alloc", "addr": at, "size": 1, "stream": 0, "user_metadata": word} for at, word in enumerate(words)
    ]
    snapshot = read_snapshot([pickle.dumps({"segments": [], "device_traces": [events]}, protocol)])
    labels = snapshot.devices[0].events.label
    assert [snapshot.labels[label] for label in labels] == [word[:200] for word in words]


def test_a_text_that_lies_about_its_length_is_refused() -> None:
    events = [{"action": "alloc", "addr": at, "size": 1, "stream": 0, "user_metadata": f"w{at}"} for at in range(60)]
    data = pickle.dumps({"segments": [], "device_traces": [events]}, 4)
    assert data.count(b"\x8c\x03w30\x94") == 1
    with pytest.raises(RefusedError):
        rows_of(data.replace(b"\x8c\x03w30\x94", b"\x8c\x02w30\x94"))
