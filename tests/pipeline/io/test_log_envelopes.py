"""Logs as collectors export them: arrays, tables, the newest line first."""

from __future__ import annotations

import json

import pytest

from sweepscope.pipeline.io.log_envelopes import envelope, is_of_training
from sweepscope.pipeline.io.text_encoding import text_chunks

MINUTES = [f"2026-11-19T12:{minute:02d}:00" for minute in range(3)]
MESSAGES = ["step 1 loss 9.5", "Traceback\n  File x", "step 2, loss 9.25"]
LINES = b"2026-11-19T12:00:00Z step 1 loss 9.5\n2026-11-19T12:01:00Z Traceback\n  File x\n2026-11-19T12:02:00Z step 2, loss 9.25\n"


def read(data: bytes, size: int = 8192) -> bytes:
    return b"".join(text_chunks("pod.log", [data[at : at + size] for at in range(0, len(data), size)]))


def objects(*, newest_first: bool) -> list[dict[str, str]]:
    found = [
        {"insertId": str(at), "textPayload": text, "timestamp": f"{time}Z"}
        for at, (time, text) in enumerate(zip(MINUTES, MESSAGES, strict=True))
    ]
    return found[::-1] if newest_first else found


@pytest.mark.parametrize("newest_first", [False, True])
@pytest.mark.parametrize("indent", [None, 2])
@pytest.mark.parametrize("size", [7, 8192])
def test_the_elements_of_an_array_are_lines_in_the_order_of_time(
    newest_first: bool, indent: int | None, size: int
) -> None:
    data = json.dumps(objects(newest_first=newest_first), indent=indent).encode()
    assert read(data, size) == LINES


@pytest.mark.parametrize("newest_first", [False, True])
def test_objects_with_the_newest_first_are_turned_round(newest_first: bool) -> None:
    data = "".join(json.dumps(one) + "\n" for one in objects(newest_first=newest_first)).encode()
    assert read(data) == LINES


@pytest.mark.parametrize("newest_first", [False, True])
@pytest.mark.parametrize("header", ["timestamp,message", "Time,Line", '"@timestamp",host,"message"'])
def test_the_messages_of_a_table_are_lines(header: str, newest_first: bool) -> None:
    cells = [
        f'{time}{",gpu1" if "host" in header else ""},"{text}"\r\n'
        for time, text in zip(MINUTES, MESSAGES, strict=True)
    ]
    data = (header + "\r\n" + "".join(cells[::-1] if newest_first else cells)).encode()
    assert read(data) == LINES


def test_times_of_cloudwatch_are_milliseconds() -> None:
    assert read(b"timestamp,message\n1763600000000,step 1\n1763600001500,step 2\n") == (
        b"2025-11-20T00:53:20Z step 1\n2025-11-20T00:53:21.500000Z step 2\n"
    )


def test_records_of_steps_in_an_array_become_one_object_per_line() -> None:
    steps = [{"step": step, "loss": 9.0 - step} for step in (1, 2)]
    assert read(json.dumps(steps, indent=1).encode()) == b'{"step": 1, "loss": 8.0}\n{"step": 2, "loss": 7.0}\n'


@pytest.mark.parametrize(
    "data",
    [
        b'[\n  {"message": "step 1", "timestamp": "2026',
        b"[2026-11-19 12:00:00] step 1\n",
        b"time,step,text\n1,2,3\n",
        b"step 1, message: none\n",
        b"\r 1%| | 1/9 [00:10<02:20, 9.99s/it]\r 2%| | 2/9 [00:20<02:20, 9.99s/it, message=1]\n",
        b'time,"message\n',
    ],
)
def test_what_is_cut_or_no_envelope_stays_as_it_is(data: bytes) -> None:
    assert read(data) == data


def test_records_of_text_are_no_log() -> None:
    assert not is_of_training(b'{"prompt": "loss of a step", "completion": "12"}\n')
    assert is_of_training(b'{"train/step": 1, "train/loss": 9.5}\n{"train/step": 2, "train/loss": 9.25}\n{"tr')
    assert not is_of_training(b'{"step": 100, "loss": 2.5}\n')
    runs = b'{"name": "a", "last_step": 10, "loss": 2.5}\n{"name": "b", "last_step": 20, "loss": 2.25}\n'
    assert not is_of_training(runs)
    assert not is_of_training(runs.replace(b"last_step", b"step").replace(b"20", b"10"))
    assert not is_of_training(b'{"text": "A page", "timestamp": "2019-04-25T12:57:54Z"}\n')
    assert envelope(b'{"prompt": "x"}\n') is None


def test_the_journal_of_systemd_is_messages_with_times() -> None:
    rows = [
        {"__REALTIME_TIMESTAMP": str(1_763_553_600_000_000 + at * 60_000_000), "_PID": "4411", "MESSAGE": text}
        for at, text in enumerate(MESSAGES[::2])
    ]
    data = "".join(f"{json.dumps(row)}\n" for row in rows).encode()
    assert read(data) == b"2025-11-19T12:00:00Z step 1 loss 9.5\n2025-11-19T12:01:00Z step 2, loss 9.25\n"


def test_lines_of_a_container_have_their_times_but_those_that_docker_has_split() -> None:
    texts = ["step 1 loss 9.5\n", "a line that is lo", "ng\n", "[12:00:03] step 2\n"]
    rows = ({"log": text, "stream": "stdout", "time": f"2026-11-19T12:00:0{at}.5Z"} for at, text in enumerate(texts))
    data = "".join(json.dumps(row) + "\n" for row in rows).encode()
    assert read(data) == b"2026-11-19T12:00:00.5Z step 1 loss 9.5\na line that is long\n[12:00:03] step 2\n"


def test_events_within_an_object_are_messages() -> None:
    """`aws logs get-log-events`."""
    events = [{"timestamp": 1763600000000 + 1500 * at, "message": f"step {at}"} for at in range(2)]
    data = json.dumps({"events": events, "nextForwardToken": "f/1"}).encode()
    assert is_of_training(data)
    assert read(data) == b"2025-11-20T00:53:20Z step 0\n2025-11-20T00:53:21.500000Z step 1\n"
    assert not is_of_training(b'{"events": [{"name": "a"}]}')


def test_a_message_within_an_object_of_the_collector_is_one() -> None:
    """Datadog's archives keep it in `content`, Elasticsearch in `_source`."""
    rows = (
        {"id": str(at), name: {"timestamp": f"2026-11-19T12:00:0{at}Z", "message": f"step {at}"}}
        for at, name in enumerate(("content", "_source"))
    )
    assert read("".join(json.dumps(row) + "\n" for row in rows).encode()) == (
        b"2026-11-19T12:00:00Z step 0\n2026-11-19T12:00:01Z step 1\n"
    )
