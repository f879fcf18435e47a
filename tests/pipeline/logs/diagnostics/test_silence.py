"""Silent hangs: what is a silence, what is a pause, and what it says about how the run ended."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from itertools import accumulate

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sweepscope.pipeline.logs.diagnostics.silence import at_end, silences, silent_pauses
from sweepscope.schemas.thresholds import SILENCE_LONGEST_PAUSES, SILENCE_S, SILENCE_USUAL_PAUSES
from tests.pipeline.ingest_in_memory import LATER, batch_of, tables_of
from tests.pipeline.ingest_in_memory import assembled as assembled_
from tests.pipeline.logs.steps_table import BEGIN, steps_table
from tests.properties import draws

HOUR_S = 3600.0


def paced(*pauses_s: float) -> pl.DataFrame:
    return steps_table(at_s=[0.0, *accumulate(pauses_s)])


def run(*, ended_s: float | None = None, modified_s: float | None = None) -> pl.DataFrame:
    """The run of `paced`: when its last line and its file were written, in seconds after BEGIN (a log in UTC)."""

    def at(seconds: float | None) -> datetime | None:
        return None if seconds is None else BEGIN + timedelta(seconds=seconds)

    row = {"run_id": "a", "ended_at": at(ended_s), "modified_at": at(modified_s)}
    return pl.DataFrame(
        [row], schema={"run_id": pl.String(), "ended_at": pl.Datetime("us"), "modified_at": pl.Datetime("us")}
    )


def silent(pauses_s: Sequence[float], now_s: float = 1e9, **when: float) -> tuple[str | None, bool | None]:
    found = silences(paced(*pauses_s), run(**when), now=BEGIN + timedelta(seconds=now_s))
    return found.select("silence", "is_hang").row(0)


class TestLaterLines:
    def test_lines_without_steps_for_an_hour(self) -> None:
        text, is_hang = silent([10.0] * 9, ended_s=90 + 4000)
        assert text == (
            "no step for 66.7 min after step 10: 400 times the usual 10.0 s between logged steps, "
            "400 times the longest pause before"
        )
        assert is_hang

    def test_a_pause_as_long_as_an_earlier_one_is_a_checkpoint(self) -> None:
        assert silent([10.0] * 5 + [1500.0] + [10.0] * 5, ended_s=1600 + 4000) == (None, False)

    def test_slow_steps_are_given_time(self) -> None:
        assert silent([600.0] * 9, ended_s=5400 + 3000)[0] is None

    def test_a_short_silence_is_none(self) -> None:
        assert silent([0.1] * 9, ended_s=SILENCE_S)[0] is None

    def test_whole_hours_are_doubted(self) -> None:
        text, is_hang = silent([10.0] * 9, ended_s=90 + 2 * HOUR_S + 30)
        assert text is not None
        assert text.endswith("may be the difference of two clocks in one file")
        assert not is_hang

    def test_a_log_that_ends_with_its_steps(self) -> None:
        assert silent([10.0] * 9, ended_s=90) == (None, False)


class TestTheFile:
    @pytest.mark.parametrize("zone_h", [0, 9, -7.5])
    def test_a_log_that_was_written_live_and_stopped(self, zone_h: float) -> None:
        modified_s = 90 + zone_h * HOUR_S
        text, is_hang = silent([10.0] * 9, now_s=modified_s + 3000, ended_s=90, modified_s=modified_s)
        assert text is not None
        assert text.startswith("no step for 50.0 min after step 10")
        assert is_hang

    def test_a_copied_file_says_nothing(self) -> None:
        assert silent([10.0] * 9, now_s=500_000, ended_s=90, modified_s=498_000)[0] is None

    def test_a_file_that_is_still_written_to(self) -> None:
        assert silent([10.0] * 9, now_s=700, ended_s=90, modified_s=90)[0] is None

    def test_what_stopped_days_ago_is_history(self) -> None:
        assert silent([10.0] * 9, now_s=90 + 25 * HOUR_S, ended_s=90, modified_s=90)[0] is None

    def test_another_attempt_followed(self) -> None:
        assert silent([10.0] * 9, now_s=5000, ended_s=90)[0] is None


def test_few_or_untimed_steps_tell_nothing() -> None:
    few, untimed = paced(10.0, 10.0), steps_table(loss=[3.0] * 20)
    for steps in (few, untimed):
        assert silences(steps, run(ended_s=1e6), now=LATER).is_empty()


@settings(max_examples=draws(100))
@given(
    pauses_s=st.lists(st.floats(0.0, 5000.0), min_size=5, max_size=40),
    silence_s=st.floats(0.0, 1e6),
)
def test_a_silence_is_longer_than_every_limit(pauses_s: list[float], silence_s: float) -> None:
    total_s = sum(pauses_s)
    text, _ = silent(pauses_s, ended_s=total_s + silence_s)
    usual_s = sorted(pauses_s)[len(pauses_s) // 2]
    if text is None:
        assert (
            silence_s <= max(SILENCE_S, SILENCE_USUAL_PAUSES * usual_s, SILENCE_LONGEST_PAUSES * max(pauses_s)) + 1e-3
        )
    else:
        assert silence_s >= max(SILENCE_S, SILENCE_LONGEST_PAUSES * max(pauses_s)) - 1e-3


def test_a_pause_that_the_run_survived() -> None:
    found = silent_pauses(paced(*[10.0] * 6, 3000.0, *[10.0] * 6))
    assert found.select("line_no", "text").rows() == [
        (80, "no step for 50.0 min between step 7 and step 8, 300 times the usual 10.0 s; then it went on")
    ]


@pytest.mark.parametrize(
    "pauses_s",
    [
        [10.0] * 12,
        [10.0, 10.0, 1000.0] * 4,
        [10.0] * 6 + [800.0] + [10.0] * 6,
        [10.0, 3000.0, 10.0],
        [10.0] * 6 + [3610.0] + [10.0] * 6,
    ],
    ids=["steady", "checkpoints", "short", "few", "daylight saving"],
)
def test_pauses_that_are_none(pauses_s: list[float]) -> None:
    assert silent_pauses(paced(*pauses_s)).is_empty()


def test_a_completed_run_and_a_running_one_have_no_silence() -> None:
    found = silences(paced(*[10.0] * 9), run(ended_s=9000), now=LATER)
    kinds = {
        word: at_end(found, pl.DataFrame({"run_id": ["a"], "status": [word]}))["kind"].to_list()
        for word in ("completed", "running", "timeout", "hang", "truncated")
    }
    assert kinds == {
        "completed": [],
        "running": [],
        "timeout": ["silence"],
        "hang": ["silence"],
        "truncated": ["silence"],
    }


def titan(step: int, at: str) -> str:
    return (
        f"[rank0]:[titan] 2026-05-19 {at},730 - root - INFO - step: {step:2d}  loss:  7.01706  grad_norm: 31.3750  "
        "memory: 169.20GiB(94.87%)  tps: 9,646  tflops: 812.70  mfu: 36.12%\n"
    )


STEPS = "".join(titan(step, f"19:36:{step:02d}") for step in range(1, 41))
HEARTBEAT = "[rank0]:[titan] 2026-05-19 {},101 - root - WARNING - waiting for rank 3\n"
LIMIT = "slurmstepd: error: *** JOB 17 ON n1 CANCELLED AT 2026-05-19T23:30:00 DUE TO TIME LIMIT ***\n"


class TestRuns:
    def test_a_log_that_goes_on_without_steps_is_a_hang_of_low_confidence(self) -> None:
        tables = tables_of({"a.log": STEPS + HEARTBEAT.format("20:10:10")})
        assert tables["runs"].select("status", "status_confidence").rows() == [("hang", "low")]
        assert tables["runs"]["status_evidence"][0].startswith("no step for 33.5 min after step 40")
        assert tables["events"].filter(kind="silence").select("source_path", "line_no").rows() == [("a.log", 40)]

    def test_a_log_that_only_stops_is_truncated(self) -> None:
        assert tables_of({"a.log": STEPS})["runs"]["status"].to_list() == ["truncated"]

    def test_the_schedulers_word_stands_and_the_silence_before_it_is_told(self) -> None:
        tables = tables_of({"a.log": STEPS + LIMIT})
        assert tables["runs"].select("status", "status_confidence").rows() == [("timeout", "high")]
        assert tables["events"].filter(kind="silence")["text"][0].startswith("no step for 233.3 min after step 40")

    def test_mlperfs_clock_beside_the_consoles_is_no_silence(self) -> None:
        mllog = (
            ':::MLLOG {{"namespace": "", "time_ms": {}, "event_type": "POINT_IN_TIME", "key": "tracked_stats", "value": '
            '{{"train_step_time": 1.5, "reduced_train_loss": 2.5}}, "metadata": {{"file": "x.py", "lineno": 1, "step": {}}}}}\n'
        )
        batch = (
            ':::MLLOG {"namespace": "", "time_ms": 1700000000000, "event_type": "POINT_IN_TIME", "key": "global_batch_size", '
            '"value": 8, "metadata": {"file": "x.py", "lineno": 1}}\n'
        )
        text = batch + "".join(mllog.format(1_700_000_000_000 + 1500 * step, 8 * step) for step in range(1, 20))
        tables = tables_of({"a.log": text + "2023-11-15 06:05:00 local time\n"})
        assert tables["runs"].select("framework", "status", "last_step").rows() == [("mlperf", "truncated", 19)]

    def test_a_run_that_goes_on_stepping_has_none(self) -> None:
        tables = tables_of({"a.log": STEPS + HEARTBEAT.format("19:45:10")})
        assert tables["runs"]["status"].to_list() == ["truncated"]
        assert tables["events"].filter(kind="silence").is_empty()

    def test_slow_steps_are_running_longer_than_a_quarter_of_an_hour(self) -> None:
        today = datetime.now(UTC).strftime("%Y-%m-%d")  # of an older one the file would be a copy
        text = "".join(titan(step, f"{step:02d}:36:00") for step in range(1, 9)).replace("2026-05-19", today)
        batch = batch_of({"a.log": text})
        (modified,) = batch.sources["modified_at"]
        states = {
            minutes: assembled_(batch, now=modified + timedelta(minutes=minutes))["runs"]["status"].to_list()
            for minutes in (10, 100, 200)
        }
        assert states == {10: ["running"], 100: ["running"], 200: ["truncated"]}
