"""Text or not: what is read as a log, what is transcoded, what is refused."""

from __future__ import annotations

import json
import pickle
import random

import pytest

from sweepscope.pipeline.errors import InputError
from sweepscope.pipeline.io.text_encoding import is_binary, text_chunks

NOISE = random.Random(7).randbytes(8192)  # noqa: S311 - no secret
STEP = "step: 10  loss:  7.01 Größe\n"


def read(*chunks: bytes) -> bytes:
    return b"".join(text_chunks("train.log", chunks))


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"\n",
        STEP.encode(),
        b"\xef\xbb\xbf" + STEP.encode(),
        b"a\0\0b worker ready\n" * 50,
        "temps \u00e9coul\u00e9 \u00e0 l'\u00e9tape\n".encode("latin-1") * 50,
        "ステップ 10 損失 7.01\n".encode() * 50,
        b"\x1b[31mstep\x1b[0m\r\n\x07\x08" * 20,
    ],
    ids=["empty", "line feed", "utf-8", "bom", "nul", "latin-1", "japanese", "colours"],
)
def test_text_passes_unchanged(data: bytes) -> None:
    assert read(data) == data
    assert read(*(data[i : i + 1] for i in range(len(data)))) == data


@pytest.mark.parametrize(
    "data",
    [
        b"\x7fELF\x02\x01\x01",
        b"\x89PNG\r\n",
        b"PK\x03\x04 zip",
        pickle.dumps({"segments": []}),
        b"\x93NUMPY\x01\x00",
        bytes(range(256)) * 4,
        NOISE,
        b"\xff\xfe" + NOISE,
        b"a" + b"\0" * 9000,
    ],
    ids=["elf", "png", "zip", "pickle", "numpy", "all bytes", "random", "random with a mark", "mostly zeros"],
)
def test_a_binary_file_is_refused_in_one_line_naming_it(data: bytes) -> None:
    with pytest.raises(InputError, match=r"^train\.log is a binary file") as caught:
        read(data)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("encoding", ["utf-16-le", "utf-16-be"])
@pytest.mark.parametrize("size", [1, 3, 8192])
def test_utf_16_with_its_mark_is_transcoded_wherever_it_is_cut(encoding: str, size: int) -> None:
    text = STEP * 40 + "\U0001f600\n"
    data = ("\ufeff" + text).encode(encoding)
    first, rest = data[:64], [data[i : i + size] for i in range(64, len(data), size)]
    assert read(first, *rest) == text.encode()


def test_a_hole_at_the_beginning_is_left_out() -> None:
    assert read(b"\0" * 9000, b"\0" * 9000 + STEP.encode(), b"more\n") == STEP.encode() + b"more\n"
    assert read(b"\0" * 9000) == b""


def kept_by_docker(*texts: str) -> bytes:
    return "".join(
        json.dumps({"log": text, "stream": "stderr", "time": "2025-05-16T16:39:51.2Z"}, separators=(",", ":")) + "\n"
        for text in texts
    ).encode()


@pytest.mark.parametrize("size", [1, 7, 8192])
def test_what_docker_keeps_of_a_container_is_what_it_wrote_and_when(size: int) -> None:
    data = kept_by_docker(STEP, '\u001b[32ma "quote"\r100%\n', "half ", "of a line\n", "\ud83d\n")
    data += b'not JSON\n{"other": 1}\n' + kept_by_docker("at the end")
    chunks = [data[at : at + size] for at in range(0, len(data), size)]
    at, bar = "2025-05-16T16:39:51.2Z ", '\x1b[32ma "quote"\r100%\n'
    wanted = f'{at}{STEP}{bar}half of a line\n{at}?\nnot JSON\n{{"other": 1}}\nat the end'
    assert read(*chunks) == wanted.encode()


def wrapped(*messages: str, key: str = "message", time: str = "timestamp") -> bytes:
    lines = ({time: "2025-05-01T12:00:07.5", "level": "INFO", key: message} for message in messages)
    return "".join(json.dumps(line) + "\n" for line in lines).encode()


@pytest.mark.parametrize("size", [1, 7, 8192])
@pytest.mark.parametrize(
    ("key", "time"), [("message", "timestamp"), ("msg", "ts"), ("textPayload", "receiveTimestamp")]
)
def test_of_a_log_of_objects_the_messages_are_the_lines(size: int, key: str, time: str) -> None:
    data = wrapped("step: 1\n", "12:00:08 step: 2", "Traceback\nValueError: no", key=key, time=time) + b"not JSON\n{}\n"
    chunks = [data[at : at + size] for at in range(0, len(data), size)]
    stamp = "2025-05-01T12:00:07.5Z "
    wanted = f"{stamp}step: 1\n12:00:08 step: 2\n{stamp}Traceback\nValueError: no\nnot JSON\n{{}}\n"
    assert read(*chunks) == wanted.encode()


def test_google_cloud_keeps_an_object_within_its_own() -> None:
    line = {"insertId": "a", "jsonPayload": {"message": "step: 1"}, "timestamp": "2025-05-01T12:00:07.5Z"}
    data = (json.dumps(line) + "\n").encode() * 2
    assert read(data) == b"2025-05-01T12:00:07.5Z step: 1\n" * 2


@pytest.mark.parametrize(
    "line",
    ['{"message": "a", "time": "b", "step": 1}', '{"message": "a"}', '{"message": 1, "time": "b"}', '["message"]'],
)
def test_an_object_with_metrics_or_without_a_time_is_a_line_as_it_stands(line: str) -> None:
    assert read(f"{line}\n".encode() * 3) == f"{line}\n".encode() * 3


@pytest.mark.parametrize("name", ["loss", "train_loss", "train/loss", "global_step"])
def test_an_object_with_metrics_among_messages_stays_whole(name: str) -> None:
    begun = wrapped("start")
    line = json.dumps({"timestamp": "2025-05-01T12:00:08", "message": "train", name: 2.5}).encode() + b"\n"
    assert read(begun + line + begun) == read(begun) + line + read(begun)
    assert read(line) == line


def test_a_line_that_never_ends_is_not_held() -> None:
    begun, piece = wrapped("step: 1"), b"x" * (4 << 20)
    given = list(text_chunks("a.log", iter([begun, *[piece] * 10, b"x\n" + begun])))
    assert b"".join(given) == read(begun) + piece * 10 + b"x\n" + read(begun)
    assert max(map(len, given)) < 24 << 20


def test_a_log_of_objects_is_none_of_docker() -> None:
    data = b'{"log": "a", "loss": 1.5}\n{"loss": 1.25}\n'
    assert read(data) == data


def test_only_the_beginning_decides() -> None:
    assert not is_binary(b"")
    data = STEP.encode() * 1000
    assert read(data, b"\x00\x01\x02" * 1000).startswith(data)
