from __future__ import annotations

from datetime import datetime

import pytest

from sweepscope.dashboard.format import numbers
from sweepscope.dashboard.format.numbers import NBSP


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (numbers.percent(0.363236), "36.3 %"),
        (numbers.percent(None), "–"),
        (numbers.points(-0.0204), "−2.0"),
        (numbers.points(0.0204), "+2.0"),
        (numbers.points(-0.0001), "0.0"),
        (numbers.number(3280), "3,280"),
        (numbers.number(-0.2), "0"),
        (numbers.gib(71_833_747_456), "66.9 GiB"),
        (numbers.seconds(0.0680), "0.0680 s"),
        (numbers.seconds(1.3579), "1.36 s"),
        (numbers.seconds(111.4), "111 s"),
        (numbers.seconds(0.0), "0 s"),
        (numbers.ratio(2.06), "2.1 ×"),
        (numbers.token_count(1_048_576), "1M"),
        (numbers.token_count(327_680), "320k"),
        (numbers.token_count(None), "unknown"),
        (numbers.moment(datetime(2026, 1, 2, 3, 4)), "2 Jan 2026 03:04"),
        (numbers.count(1, "run"), "1 run"),
    ],
)
def test_numbers_read_as_people_write_them(text: str, expected: str) -> None:
    assert text.replace(NBSP, " ") == expected


def test_other_peoples_text_cannot_bring_tags_into_a_chart() -> None:
    assert numbers.plain("<b>&</b>") == "&lt;b&gt;&amp;&lt;/b&gt;"
