from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from sweepscope.pipeline.derive.run_id import run_id


@given(st.text(max_size=40), st.text(max_size=5))
def test_an_id_is_twelve_hex_digits_and_the_same_every_time(path: str, key: str) -> None:
    found = run_id(path, key)
    assert len(found) == 12
    assert int(found, 16) >= 0
    assert found == run_id(path, key)


def test_another_path_or_attempt_is_another_id() -> None:
    assert len({run_id("/a.out", "1"), run_id("/a.out", "2"), run_id("/b.out", "1"), run_id("/a.out", "12")}) == 4
