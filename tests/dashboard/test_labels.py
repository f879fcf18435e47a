from __future__ import annotations

from datetime import datetime

import pytest

from dashboard import labels
from dashboard.labels import NBSP


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (labels.percent(0.363236), "36.3 %"),
        (labels.percent(None), "–"),
        (labels.points(-0.0204), "−2.0"),
        (labels.points(0.0204), "+2.0"),
        (labels.points(-0.0001), "0.0"),
        (labels.number(3280), "3,280"),
        (labels.number(-0.2), "0"),
        (labels.gib(71_833_747_456), "66.9 GiB"),
        (labels.seconds(0.0680), "0.0680 s"),
        (labels.seconds(1.3579), "1.36 s"),
        (labels.seconds(111.4), "111 s"),
        (labels.seconds(0.0), "0 s"),
        (labels.ratio(2.06), "2.1 ×"),
        (labels.token_count(1_048_576), "1M"),
        (labels.token_count(327_680), "320k"),
        (labels.token_count(None), "unknown"),
        (labels.moment(datetime(2026, 1, 2, 3, 4)), "2 Jan 2026 03:04"),
        (labels.count(1, "run"), "1 run"),
    ],
)
def test_numbers_read_as_people_write_them(text: str, expected: str) -> None:
    assert text.replace(NBSP, " ") == expected


def test_other_peoples_text_cannot_bring_tags_into_a_chart() -> None:
    assert labels.plain("<b>&</b>") == "&lt;b&gt;&amp;&lt;/b&gt;"
