"""`operations.toml`: defaults where it says nothing, and faults that name file, value and remedy but no secret."""

from __future__ import annotations

from pathlib import Path

import pytest

from sweepscope.pipeline.errors import UsageError
from sweepscope.pipeline.operations.settings import Settings, read_settings
from sweepscope.pipeline.store.home import Home


@pytest.fixture
def home(tmp_path: Path) -> Home:
    return Home.resolve(str(tmp_path / "home"))


def settings(home: Home, text: str) -> Settings:
    home.operations.write_text(text)
    return read_settings(home)


def test_without_a_file_the_defaults_count(home: Home) -> None:
    found = read_settings(home)
    assert found == Settings()
    assert (found.retention.succeeded_days, found.alerts.receivers) == (7, ())


def test_what_is_set_counts_and_the_rest_are_defaults(home: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOOK", "https://hooks.example.org/T0/secret")
    monkeypatch.setenv("MAIL_PASSWORD", "hunter2")
    found = settings(
        home,
        """
        [retention]
        succeeded_days = 2
        [alerts]
        no_data_hours = 6
        [[alerts.webhook]]
        url_env = "HOOK"
        kinds = ["hang"]
        [[alerts.mail]]
        to = ["ops@example.org"]
        host = "mail.example.org"
        security = "starttls"
        user = "sweeps"
        password_env = "MAIL_PASSWORD"
        """,
    )
    assert (found.retention.succeeded_days, found.retention.failed_days, found.alerts.no_data_hours) == (2, 30, 6)
    (hook,), (mail,) = found.alerts.webhook, found.alerts.mail
    assert (hook.address(), hook.kinds) == ("https://hooks.example.org/T0/secret", ("hang",))
    assert (mail.password(), len(mail.kinds)) == ("hunter2", 5)


def test_another_file_counts_where_the_environment_names_one(
    home: Home, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    home.operations.write_text("[retention]\nsucceeded_days = 2\n")
    mounted = tmp_path / "mounted.toml"
    monkeypatch.setenv("SWEEPSCOPE_OPERATIONS", str(mounted))
    with pytest.raises(UsageError, match=r"mounted\.toml, which SWEEPSCOPE_OPERATIONS names, is not there"):
        read_settings(home)
    mounted.write_text("[retention]\nsucceeded_days = 3\n")
    assert read_settings(home).retention.succeeded_days == 3


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        ("[retention]\nsucceeded_days = 0", "retention.succeeded_days: input should be greater than 0"),
        ("[retention]\nkeep = 3", "retention.keep: extra inputs are not permitted"),
        ("[retention]\nmax_runs = 'many'", "retention.max_runs: input should be a valid integer"),
        ("[[alerts.webhook]]\nkinds = ['hang']", r"alerts.webhook\[1\]: give either url or url_env"),
        ("[[alerts.webhook]]\nurl = 'hooks.example.org'", r"webhook\[1\]: url has to be an address"),
        ("[[alerts.webhook]]\nurl = 'https://a.b'\nkinds = ['fire']", r"kinds\[1\]: input should be 'hang'"),
        ("[[alerts.mail]]\nto = []", r"alerts.mail\[1\].to: tuple should have at least 1 item"),
        ("[[alerts.mail]]\nto = ['nobody']", r"alerts.mail\[1\]: 'nobody' is no mail address"),
        ("[[alerts.mail]]\nto = ['a@b']\nuser = 'a'\npassword_env = 'P'", "a password is not sent in the clear"),
        ("[retention", "cannot be read"),
    ],
)
def test_a_fault_names_the_file_the_value_and_the_remedy(home: Home, text: str, fault: str) -> None:
    with pytest.raises(UsageError, match=fault) as raised:
        settings(home, text)
    assert str(raised.value).startswith(str(home.operations))
    assert "docs/operations.md" in str(raised.value)


def test_a_fault_does_not_say_what_may_be_secret(home: Home) -> None:
    with pytest.raises(UsageError) as raised:
        settings(
            home, "[[alerts.webhook]]\nurl = 'hooks.example.org/T0/secret'\n[[alerts.mail]]\nto = 3\npassword = 'x1'"
        )
    assert "secret" not in str(raised.value)
    assert "x1" not in str(raised.value)


def test_a_variable_that_is_not_set_is_named(home: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("HOOK", raising=False)
    (hook,) = settings(home, "[[alerts.webhook]]\nurl_env = 'HOOK'").alerts.webhook
    with pytest.raises(UsageError, match="HOOK"):
        hook.address()


def test_receivers_are_named_without_their_secrets(home: Home) -> None:
    (hook,) = settings(home, "[[alerts.webhook]]\nurl = 'https://u:pw@hooks.example.org/T0/secret'").alerts.webhook
    assert hook.label == "webhook hooks.example.org"
