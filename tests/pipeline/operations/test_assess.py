"""Which news are sent: each once, in one message for each kind, and nothing that was there at the first look."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

from sweepscope.pipeline.operations.assess import LISTED, Memory, Message, assess, assess_silence
from sweepscope.pipeline.operations.news import News, Share
from sweepscope.pipeline.operations.settings import Alerts

NOW = datetime(2026, 11, 26, 12, tzinfo=UTC)
SETTINGS = Alerts()
RUN = {"run_id": "a", "model": "8B", "layout": "dp8", "num_gpus": 8, "accelerator": "H100", "source_path": "/s/a.log"}


def hang(**values: Any) -> dict[str, Any]:
    return {**RUN, "status_evidence": "Watchdog caught collective operation timeout", "suspect": "3", **values}


def regression(change: float = -0.1, **values: Any) -> dict[str, Any]:
    versions = {"framework_version": "2.0", "torch_version": "2.9", "nccl_version": None}
    before = {"framework_version_before": "1.0", "torch_version_before": "2.9", "nccl_version_before": None}
    return {**RUN, **versions, **before, "change": change, "noise": 0.01, **values}


def leader(layout: str, *, is_tie: bool = False, **values: Any) -> dict[str, Any]:
    figures = {"tokens_per_s_per_gpu": 9000.0, "mfu": 0.4, "margin": 0.05, "is_tie": is_tie}
    return {**RUN, "layout": layout, "variant": None, "framework": "nanotron", **figures, **values}


def assessed(news: News, memory: Memory | None, settings: Alerts = SETTINGS) -> tuple[list[Message], Memory]:
    return assess(news, memory, settings, NOW)


def test_what_is_there_at_the_first_look_is_not_told_and_what_comes_later_is_once() -> None:
    messages, memory = assessed(News(1, {"h1": hang()}, {"r1": regression()}), None)
    assert messages == []
    more = News(2, {"h1": hang(), "h2": hang(run_id="b")}, {"r1": regression(), "r2": regression(run_id="b")})
    messages, memory = assessed(more, memory)
    assert [(one.kind, one.title) for one in messages] == [
        ("hang", "1 run hung"),
        ("regression", "1 layout slower in a new version"),
    ]
    (text, run_id), *_ = messages[0].items
    assert text == "8B, dp8, 8 x H100; suspect: rank 3: Watchdog caught collective operation timeout (/s/a.log)"
    assert run_id == "b"
    assert messages[1].items[0][0] == "8B, dp8, 8 x H100: 10.0% slower (noise 1.0%) from framework 1.0 to 2.0"
    assert assessed(replace(more, version=3), memory)[0] == []


def test_what_is_away_for_a_while_is_not_told_again_and_is_forgotten_in_the_end() -> None:
    _, memory = assessed(News(1, {"h1": hang()}), None)
    _, memory = assess(News(2), memory, SETTINGS, NOW + timedelta(days=80))
    assert assess(News(3, {"h1": hang()}), memory, SETTINGS, NOW + timedelta(days=81))[0] == []
    _, memory = assess(News(4), memory, SETTINGS, NOW + timedelta(days=200))
    assert memory.seen == {}


def test_a_small_regression_is_told_once_it_is_large_enough() -> None:
    _, memory = assessed(News(1, regressions={}), None)
    messages, memory = assessed(News(2, regressions={"r": regression(-0.04)}), memory)
    assert messages == []
    messages, memory = assessed(News(3, regressions={"r": regression(-0.06)}), memory)
    assert [one.kind for one in messages] == ["regression"]


def test_a_new_leader_is_told_where_its_lead_is_clear_and_the_first_one_of_a_cell_is_not() -> None:
    messages, memory = assessed(News(1), None)
    messages, memory = assessed(News(2, leaders={"cell": leader("dp8")}), memory)
    assert messages == []
    messages, memory = assessed(News(3, leaders={"cell": leader("tp2", is_tie=True)}), memory)
    assert messages == []
    messages, memory = assessed(News(4, leaders={"cell": leader("tp2")}), memory)
    assert messages[0].items[0][0] == "8B, tp2, 8 x H100: 9,000 tokens/s/GPU, MFU 40.0%, 5.0% ahead"
    messages, memory = assessed(News(5, leaders={"cell": leader("tp2", run_id="again")}), memory)
    assert messages == []
    messages, memory = assessed(News(6, leaders={"cell": leader("dp8")}), memory)
    assert [one.kind for one in messages] == ["new_best"]


def test_rejects_are_told_when_their_share_rises_and_again_only_when_it_rises_further() -> None:
    shares = [0, 0, 2, 6, 7, 9, 12, 3, 9]
    _, memory = assessed(News(1), None)
    kinds = []
    for number, percent in enumerate(shares):
        messages, memory = assessed(News(number + 2, rejects={"nanotron": Share(percent * 10, 1000)}), memory)
        kinds.append([one.kind for one in messages])
    rising = ["rejects_rising"]
    assert kinds == [[], [], [], rising, [], [], rising, [], rising]


def test_few_rejects_say_nothing() -> None:
    _, memory = assessed(News(1), None)
    messages, memory = assessed(News(2, rejects={"nanotron": Share(9, 9)}), memory)
    assert messages == []
    messages, _ = assessed(News(3, rejects={"nanotron": Share(10, 10)}), memory)
    assert messages[0].items == (("nanotron: 10 of 10 lines and rows rejected (100.0%)", None),)


def test_many_items_are_counted() -> None:
    _, memory = assessed(News(1), None)
    hangs = {f"h{number}": hang(run_id=str(number)) for number in range(LISTED + 5)}
    (message,), _ = assessed(News(2, hangs), memory)
    assert (message.title, len(message.items), message.more) == ("15 runs hung", LISTED, 5)


def test_silence_is_told_once_until_something_comes() -> None:
    hours = 3600.0
    memory = Memory(newest_input_s=NOW.timestamp() - 23 * hours)
    assert assess_silence(memory, SETTINGS, NOW) == ([], memory)
    later = NOW + timedelta(hours=2)
    (message,), memory = assess_silence(memory, SETTINGS, later)
    assert (message.kind, message.title) == ("no_data", "No new data for 25 hours")
    assert "2026-11-25 13:00 UTC" in message.items[0][0]
    assert assess_silence(memory, SETTINGS, later + timedelta(days=3))[0] == []
    _, memory = assessed(News(2, newest_input_s=later.timestamp()), memory)
    assert assess_silence(memory, SETTINGS, later)[0] == []
    assert len(assess_silence(memory, SETTINGS, later + timedelta(hours=24))[0]) == 1
    assert assess_silence(Memory(), SETTINGS, NOW) == ([], Memory())
