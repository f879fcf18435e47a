"""Alerts through a real store, a real HTTP server and a real SMTP server: once each, tried again, without secrets."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import dagster as dg
import pytest

from sweepscope.pipeline.__main__ import main
from sweepscope.pipeline.errors import StoreError, UsageError
from sweepscope.pipeline.operations import outbox
from sweepscope.pipeline.operations.alerting import look, send_test
from sweepscope.pipeline.operations.outbox import read_state, state_file
from sweepscope.pipeline.orchestration.alert_sensor import alerts
from sweepscope.pipeline.orchestration.resources import HomeResource
from sweepscope.pipeline.store.home import Home
from sweepscope.pipeline.store.lake import Lake
from sweepscope.pipeline.store.publish import publish
from tests.pipeline.operations.receivers import Hooks, Mailbox, mail_receiver, web_receiver
from tests.pipeline.store.lake_rows import accelerators, together, unit

SECRET = "hidden-part"


@pytest.fixture
def hooks() -> Iterator[Hooks]:
    with web_receiver() as found:
        yield found


@pytest.fixture
def mailbox() -> Iterator[Mailbox]:
    with mail_receiver() as found:
        yield found


@pytest.fixture
def home(tmp_path: Path, hooks: Hooks) -> Home:
    """A home with one completed run, a webhook, and a first look behind it."""
    home = Home.resolve(str(tmp_path / "home"))
    webhook = f'[[alerts.webhook]]\nurl = "{hooks.url}"\n'
    home.operations.write_text(f'[alerts]\ndashboard_url = "http://sweeps.example.org/"\n{webhook}')
    Lake(home).commit(together([unit("a"), accelerators("H100")]))
    publish(home)
    look(home)
    return home


def hang(home: Home, name: str = "b", evidence: str = "Watchdog caught collective operation timeout") -> None:
    Lake(home).commit(unit(name, status="hang", status_evidence=evidence, tokens_per_s_per_gpu=None, mfu=None))
    publish(home)


def test_a_hang_is_told_once_also_after_a_restart(home: Home, hooks: Hooks) -> None:
    assert hooks.got == []
    hang(home)
    assert look(home).sent == 1
    (got,) = hooks.got
    assert (got["kind"], got["title"], got["more"]) == ("hang", "1 run hung", 0)
    assert got["items"][0]["url"] == "http://sweeps.example.org/run?run=b"
    assert got["text"].splitlines()[0] == "sweepscope: 1 run hung"
    assert "Watchdog caught" in got["text"]
    assert look(home).sent == 0
    # Another process, as after a restart.
    done = subprocess.run(
        [sys.executable, "-m", "sweepscope", "alerts", "send", "--home", str(home.path), "--json"],
        capture_output=True,
        check=True,
    )
    assert json.loads(done.stdout)["sent"] == 0
    assert len(hooks.got) == 1


def test_regressions_new_leaders_and_rejects_come_from_the_store(home: Home, hooks: Hooks) -> None:
    base = datetime(2026, 11, 1)
    versions = (("1.0", 9_000.0), ("2.0", 6_000.0))
    for number, (version, speed) in enumerate(versions):
        for repeat in range(3):
            at = base + timedelta(days=number, hours=repeat)
            run = {"framework_version": version, "started_at": at, "cluster": "c", "layout": "dp8"}
            Lake(home).commit(unit(f"v{number}{repeat}", tokens_per_s_per_gpu=speed + repeat, **run))
    publish(home)
    look(home)
    assert {one["kind"] for one in hooks.got} >= {"regression"}
    (slower,) = (one for one in hooks.got if one["kind"] == "regression")
    assert "33.3% slower" in slower["text"]
    assert "framework 1.0 to 2.0" in slower["text"]
    hooks.got.clear()
    for repeat in range(3):
        Lake(home).commit(unit(f"w{repeat}", layout="tp8", dp=1, tp=8, tokens_per_s_per_gpu=20_000.0 + repeat))
    publish(home)
    look(home)
    (best,) = hooks.got
    assert (best["kind"], best["title"]) == ("new_best", "1 cell with a new fastest layout")
    assert "tp8" in best["text"]


def test_a_receiver_that_fails_is_tried_again_later_and_given_up_after_a_day(home: Home, hooks: Hooks) -> None:
    hang(home)
    hooks.answers = [500, 302]
    now = datetime.now(UTC)
    done = look(home, now=now)
    assert (done.sent, done.waiting) == (0, 1)
    assert done.errors == {"webhook " + hooks.url.split("/")[2]: f"webhook {hooks.url.split('/')[2]} answered 500"}
    assert look(home, now=now + timedelta(seconds=30)).errors == {}, "it is tried again after a minute"
    assert "answered 302" in look(home, now=now + timedelta(seconds=61)).sentence
    assert look(home, now=now + timedelta(minutes=10)).sent == 1
    assert len(hooks.got) == 1
    hang(home, "c")
    hooks.answers = [500, 500]
    assert look(home, now=now).waiting == 1
    assert look(home, now=now + timedelta(hours=25)).given_up == 1
    assert read_state(home).given_up == 1
    assert look(home, now=now + timedelta(hours=26)).waiting == 0


def test_what_was_not_delivered_when_the_process_died_is_delivered_by_the_next(
    home: Home, hooks: Hooks, monkeypatch: pytest.MonkeyPatch
) -> None:
    hang(home)

    def die(*_: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr("sweepscope.pipeline.operations.alerting.deliver", die)
        with pytest.raises(KeyboardInterrupt):
            look(home)
    assert hooks.got == []
    assert look(home).sent == 1
    assert [one["title"] for one in hooks.got] == ["1 run hung"]


def test_secrets_are_in_no_message_and_no_state(home: Home, hooks: Hooks, caplog: pytest.LogCaptureFixture) -> None:
    token = "hf_" + "aB3" * 12
    hang(home, evidence=f"timeout, HF_TOKEN={token}")
    hooks.answers = [404]
    done = look(home)
    look(home, now=datetime.now(UTC) + timedelta(minutes=2))
    assert token not in json.dumps(hooks.got)
    for text in (done.sentence, caplog.text, state_file(home).read_text()):
        assert SECRET not in text
        assert token not in text


def test_a_mail_says_the_same(home: Home, hooks: Hooks, mailbox: Mailbox) -> None:
    mail = f'[[alerts.mail]]\nto = ["a@example.org", "b@example.org"]\nhost = "127.0.0.1"\nport = {mailbox.port}\n'
    home.operations.write_text(f'[[alerts.webhook]]\nurl = "{hooks.url}"\nkinds = ["no_data"]\n{mail}')
    hang(home)
    mailbox.refusal = "451 try later"
    now = datetime.now(UTC)
    assert "answered 451" in look(home, now=now).sentence
    mailbox.refusal = None
    assert look(home, now=now + timedelta(minutes=2)).sent == 1
    (got,) = mailbox.got
    assert (got["subject"], got["to"]) == ("sweepscope: 1 run hung", "a@example.org, b@example.org")
    assert "Watchdog caught" in str(got.get_payload(decode=True), "utf-8")
    assert hooks.got == [], "it asked for other kinds only"


def test_a_server_without_encryption_gets_no_password(
    home: Home, mailbox: Mailbox, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MAIL_PASSWORD", "hunter2")
    home.operations.write_text(
        f'[[alerts.mail]]\nto = ["a@example.org"]\nhost = "127.0.0.1"\nport = {mailbox.port}\nsecurity = "starttls"\n'
        'user = "me"\npassword_env = "MAIL_PASSWORD"\n'
    )
    (error,) = send_test(home).values()
    assert error is not None
    assert "hunter2" not in error
    assert mailbox.got == []


def test_silence_is_told_while_the_store_stays_as_it_is(home: Home, hooks: Hooks) -> None:
    tables = unit("a")
    written = datetime.now(UTC)
    Lake(home).commit(
        {**tables, "files": tables["files"].with_columns(mtime=written.timestamp() + 0 * tables["files"]["bytes"])}
    )
    publish(home)
    assert look(home, now=written + timedelta(hours=1)).sent == 0
    assert look(home, now=written + timedelta(hours=25)).sent == 1
    assert hooks.got[-1]["title"] == "No new data for 25 hours"
    assert look(home, now=written + timedelta(hours=99)).sent == 0


def test_the_sensor_looks_and_says_what_came_of_it(home: Home, hooks: Hooks) -> None:
    hang(home)
    with dg.build_sensor_context(resources={"store_home": HomeResource(path=str(home.path))}) as context:
        reason = alerts(context)
        assert isinstance(reason, dg.SkipReason)
        assert reason.skip_message == "1 alert sent, 0 waiting, 0 given up"
        home.operations.write_text("[alerts]\nno_data_hours = 'x'\n")
        assert "alerts.no_data_hours" in str(alerts(context).skip_message)


def test_the_command_tests_every_receiver(
    home: Home, hooks: Hooks, mailbox: Mailbox, capsys: pytest.CaptureFixture[str]
) -> None:
    with home.operations.open("a") as file:
        file.write(f'[[alerts.mail]]\nto = ["a@example.org"]\nhost = "127.0.0.1"\nport = {mailbox.port}\n')
    assert main(["alerts", "test", "--home", str(home.path)]) == 0
    assert [one["kind"] for one in hooks.got] == ["test"]
    assert [one["subject"] for one in mailbox.got] == ["sweepscope: test"]
    hooks.answers = [500]
    assert main(["alerts", "test", "--home", str(home.path), "--json"]) == 1
    assert sorted(json.loads(capsys.readouterr().out.split("\n", 2)[2]).values(), key=str)[-1].endswith("answered 500")
    assert main(["alerts", "status", "--home", str(home.path)]) == 0
    shown = capsys.readouterr().out
    assert SECRET not in shown
    assert "hang, regression, no_data, new_best, rejects_rising" in shown
    home.operations.unlink()
    assert main(["alerts", "test", "--home", str(home.path)]) == 2
    assert "docs/operations.md" in capsys.readouterr().err


def test_without_receivers_nothing_is_read_or_kept(home: Home) -> None:
    home.operations.unlink()
    state_file(home).unlink()
    hang(home)
    assert look(home).sent == 0
    assert not state_file(home).exists()


def test_faults_name_the_file_and_the_remedy(home: Home) -> None:
    state_file(home).write_text("{}")
    with pytest.raises(StoreError, match=r"alerts/state\.json cannot be read .* Move it away"):
        look(home)
    home.operations.write_text("[[alerts.webhook]]\nurl = 3\n")
    with pytest.raises(UsageError, match=r"operations\.toml: alerts\.webhook"):
        look(home)


def test_the_state_is_kept_whole(home: Home, hooks: Hooks) -> None:
    hang(home)
    hooks.answers = [500]
    look(home)
    state = read_state(home)
    assert (len(state.outbox), state.outbox[0].tries) == (1, 1)
    outbox.write_state(home, state)
    assert read_state(home) == state
