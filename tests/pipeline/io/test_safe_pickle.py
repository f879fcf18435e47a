"""Plain values load as pickle itself loads them; whatever asks for more is refused, and nothing of it runs."""

from __future__ import annotations

import datetime
import pickle
import random
import time
from collections import OrderedDict
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sweepscope.pipeline.io.safe_pickle import Limits, PickleRefusedError, load

SCALARS = st.one_of(st.none(), st.booleans(), st.integers(-(2**100), 2**100), st.floats(allow_nan=False), st.text())
KEYS = st.integers(1 - 2**64, 2**64 - 1)
PLAIN = st.recursive(
    SCALARS,
    lambda inner: st.one_of(
        st.lists(inner), st.dictionaries(st.one_of(st.text(), KEYS), inner), st.lists(inner).map(tuple)
    ),
)
REFUSED = {
    "a function to call": (b"\x80\x04cbuiltins\nprint\n\x8c\x05hello\x85R.", "GLOBAL"),
    "a dotted name": (b"\x80\x04\x8c\x08builtins\x8c\x0aobject.foo\x93.", "STACK_GLOBAL"),
    "an object to make": (b"\x80\x04)\x81.", "NEWOBJ"),
    "a state to set": (b"\x80\x02}}b.", "BUILD"),
    "a registered extension": (b"\x80\x04\x82\x01.", "EXT1"),
    "a persistent id": (b"\x80\x04\x8c\x01xQ.", "BINPERSID"),
    "the text protocol": (b"(dp0\n.", "not a pickle of protocol 2 to 5"),
    "a protocol to come": (b"\x80\x06}.", "not a pickle of protocol 2 to 5"),
    "a memo index that costs 8 GiB": (b"\x80\x04}r\x00\x00\x00 .", "memo index 536,870,912 of 0"),
    "a text of a terabyte": (b"\x80\x04\x8d\0\0\0\0\0\1\0\0abc.", "a text of 1,099,511,627,776 bytes"),
    "a frame of a terabyte": (b"\x80\x04\x95\0\0\0\0\0\1\0\0}.", "frame"),
    "an integer of 255 bytes": (b"\x80\x04\x8a\xff" + b"\x01" * 255 + b".", "an integer of 255 bytes"),
    "text that is not UTF-8": (b"\x80\x04\x8c\x01\xff.", "not UTF-8"),
    "no STOP": (b"\x80\x04}", "before its STOP"),
    "STOP inside a list": (b"\x80\x04](K\x01.", "unfinished"),
    "two pickles": (b"\x80\x04}.\x80\x04}.", "behind STOP"),
    "nothing to take": (b"\x80\x04\x86.", "too few values"),
    "a list of nothing": (b"\x80\x04e.", "mark is missing"),
    "a dict as a key": (b"\x80\x04}(}K\x01u.", "key"),
    "items for a number": (b"\x80\x04K\x01(K\x01e.", "not a list"),
    "an unset memo slot": (b"\x80\x04h\x05.", "not there"),
    "itself": (b"\x80\x04]\x94h\x00a.", "contains itself"),
    "marks without end": (b"\x80\x04" + b"(" * 1000, "deep"),
    "lists without end": (b"\x80\x04" + b"]" * 100_000 + b"a" * 99_999 + b".", "deep"),
}


@pytest.mark.slow
@given(PLAIN, st.integers(2, 5))
def test_plain_values_load_as_pickle_loads_them(value: object, protocol: int) -> None:
    assert load(pickle.dumps(value, protocol), Limits(depth=1000, marks=1000, int_bytes=64)) == value


@pytest.mark.parametrize("protocol", [3, 4, 5])
def test_bytes_are_plain_where_they_need_no_import(protocol: int) -> None:
    assert load(pickle.dumps({"raw": b"\x00\xff", "long": b"x" * 300}, protocol)) == {
        "raw": b"\x00\xff",
        "long": b"x" * 300,
    }
    with pytest.raises(PickleRefusedError, match="GLOBAL"):
        load(pickle.dumps(b"x", 2))  # a call of codecs.encode


def test_shared_values_stay_shared() -> None:
    frame = {"name": "f", "line": 3}
    value = load(pickle.dumps([[frame], [frame]]))
    assert value == [[frame], [frame]]
    assert isinstance(value, list)
    assert value[0][0] is value[1][0]


@pytest.mark.slow
@given(PLAIN, st.integers(2, 5), st.integers(1, 40))
def test_blocks_of_any_size_make_no_difference(value: object, protocol: int, size: int) -> None:
    data = pickle.dumps(value, protocol)
    chunks = [data[begin : begin + size] for begin in range(0, len(data), size)]
    assert load(chunks, Limits(depth=1000, marks=1000, int_bytes=64)) == value


@pytest.mark.slow
@pytest.mark.parametrize("what", REFUSED)
def test_refuses(what: str, capsys: pytest.CaptureFixture[str]) -> None:
    data, why = REFUSED[what]
    with pytest.raises(PickleRefusedError, match=why):
        load(data)
    assert not capsys.readouterr().out


@pytest.mark.parametrize("value", [datetime.date(2025, 1, 1), OrderedDict(a=1), {1, 2}, 1j, print, bytearray(b"x")])
@pytest.mark.parametrize("protocol", [2, 3, 4, 5])
def test_refuses_whatever_needs_an_import(value: object, protocol: int) -> None:
    with pytest.raises(PickleRefusedError):
        load(pickle.dumps([1, value], protocol))


def test_a_value_that_unfolds_without_bound_is_refused_at_once() -> None:
    bomb: object = [0]
    for _ in range(40):
        bomb = [bomb] * 10
    with pytest.raises(PickleRefusedError, match="unfold to over"):
        load(pickle.dumps(bomb))


def test_padding_of_the_viewers_base64_is_no_second_value() -> None:
    assert load(pickle.dumps({"a": 1}) + b"\0\0") == {"a": 1}
    with pytest.raises(PickleRefusedError):
        load(pickle.dumps({"a": 1}) + b"\0\0\0\0")


def test_mutations_either_load_or_are_refused() -> None:
    rng = random.Random(7)  # noqa: S311 - mutations, not secrets
    data = pickle.dumps([{"a": [1, 2.5, "x", (True, None)], "b": {"c": 2**40}} for _ in range(5)])
    change: Callable[[bytes], bytes]
    outcomes = set()
    for _ in range(5_000):
        place, byte = rng.randrange(len(data)), bytes([rng.randrange(256)])
        change = rng.choice(
            [
                lambda d, p=place, b=byte: d[:p] + b + d[p + 1 :],
                lambda d, p=place, b=byte: d[:p] + b + d[p:],
                lambda d, p=place, _b=byte: d[:p] + d[p + 3 :],
                lambda d, p=place, _b=byte: d[:p],
            ]
        )
        try:
            load(change(data))
            outcomes.add("loaded")
        except PickleRefusedError:
            outcomes.add("refused")
    assert outcomes == {"loaded", "refused"}


def test_keys_that_all_have_one_hash_are_refused_soon() -> None:
    """Python's hash of an integer is its remainder by 2**61 - 1; in a dict of equal hashes each is compared with all."""
    begin = time.process_time()
    with pytest.raises(PickleRefusedError, match="a key that is neither text nor an integer of 64 bits"):
        load(pickle.dumps({(2**61 - 1) * number: None for number in range(1, 200)}, 4))
    assert time.process_time() - begin < 10
