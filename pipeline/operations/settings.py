"""`operations.toml` in a home: how long Dagster's records are kept, and what is sent to whom.

A missing file, and a missing table or value in it, mean the defaults. Secrets may be named by the environment variable
that holds them (`url_env`, `password_env`) instead of being written down; the home is readable for its owner alone.
"""

from __future__ import annotations

import hashlib
import os
import tomllib
from pathlib import Path
from typing import Annotated, Literal
from urllib.parse import urlsplit

from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from sweepscope.pipeline.errors import UsageError
from sweepscope.pipeline.store.home import OPERATIONS_VARIABLE, Home

Kind = Literal["hang", "regression", "no_data", "new_best", "rejects_rising"]
KINDS: tuple[Kind, ...] = ("hang", "regression", "no_data", "new_best", "rejects_rising")
"""What can be alerted on."""

Days = Annotated[float, Field(gt=0, le=3650)]


class _Strict(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class Retention(_Strict):
    """How long Dagster's records are kept. Rows of the store are never removed by age.

    Attributes:
        succeeded_days: of runs that succeeded.
        failed_days: of runs that failed or were canceled.
        max_runs: finished runs, whatever their age.
        skipped_tick_days: of ticks of sensors and schedules that asked for nothing.
        tick_days: of other ticks.
    """

    succeeded_days: Days = 7.0
    failed_days: Days = 30.0
    max_runs: Annotated[int, Field(ge=50, le=100_000)] = 1000
    skipped_tick_days: Days = 1.0
    tick_days: Days = 7.0


class Webhook(_Strict):
    """An address that gets each alert as JSON by POST; `text` is what Slack, Mattermost and the like show."""

    url: str | None = None
    url_env: str | None = None
    kinds: tuple[Kind, ...] = KINDS

    @model_validator(mode="after")
    def _has_one(self) -> Webhook:
        if (self.url is None) == (self.url_env is None):
            raise ValueError("give either url or url_env (the environment variable that holds the address)")
        if self.url is not None:
            _checked_url(self.url, "url")
        return self

    def address(self) -> str:
        """Where to send to. Raises UsageError where the environment variable is not set or holds no address."""
        if self.url is not None:
            return self.url
        return _checked_url(_environment(str(self.url_env)), str(self.url_env))

    @property
    def key(self) -> str:
        """Tells receivers apart, also those of one label, from one start to the next."""
        return _digest(self.url, self.url_env)

    @property
    def label(self) -> str:
        """Name of the receiver without what may be secret: paths of webhooks are their passwords."""
        return f"webhook {urlsplit(self.url).netloc.rpartition('@')[2]}" if self.url else f"webhook ${self.url_env}"


class Mail(_Strict):
    """A mailbox, and the server that takes mail for it."""

    to: Annotated[tuple[str, ...], Field(min_length=1)]
    sender: str = "sweepscope@localhost"
    host: str = "localhost"
    port: Annotated[int, Field(ge=1, le=65535)] = 25
    security: Literal["none", "starttls", "tls"] = "none"
    user: str | None = None
    password_env: str | None = None
    kinds: tuple[Kind, ...] = KINDS

    @model_validator(mode="after")
    def _is_whole(self) -> Mail:
        if wrong := [text for text in (*self.to, self.sender) if "@" not in text or any(c.isspace() for c in text)]:
            raise ValueError(f"{wrong[0]!r} is no mail address")
        if (self.user is None) != (self.password_env is None):
            raise ValueError("user and password_env (the environment variable that holds the password) go together")
        if self.user is not None and self.security == "none":
            raise ValueError('a password is not sent in the clear: set security = "starttls" or "tls"')
        return self

    def password(self) -> str | None:
        """The password, if any. Raises UsageError where its variable is not set."""
        return None if self.password_env is None else _environment(self.password_env)

    @property
    def key(self) -> str:
        """As of a webhook."""
        return _digest(*self.to, self.host, self.port)

    @property
    def label(self) -> str:
        """Name of the receiver."""
        return f"mail {', '.join(self.to)} by {self.host}:{self.port}"


Receiver = Webhook | Mail


class Alerts(_Strict):
    """What is worth an alert, and who gets it."""

    no_data_hours: Annotated[float, Field(gt=0, le=8760)] = 24.0
    regression_percent: Annotated[float, Field(gt=0, lt=100)] = 5.0
    rejects_percent: Annotated[float, Field(gt=0, le=100)] = 5.0
    dashboard_url: str | None = None
    webhook: tuple[Webhook, ...] = ()
    mail: tuple[Mail, ...] = ()

    @property
    def receivers(self) -> tuple[Receiver, ...]:
        """Everybody who gets alerts."""
        return (*self.webhook, *self.mail)


class Settings(_Strict):
    """The whole file."""

    retention: Retention = Retention()
    alerts: Alerts = Alerts()


def read_settings(home: Home) -> Settings:
    """The settings of a home; the defaults where it has no file.

    Raises:
        UsageError: the file cannot be read or says something that it cannot: the file, the value and the remedy.
    """
    path = Path(os.environ.get(OPERATIONS_VARIABLE) or home.operations)
    try:
        parsed = tomllib.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        if path != home.operations:
            raise UsageError(f"{path}, which {OPERATIONS_VARIABLE} names, is not there.") from None
        return Settings()
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise UsageError(f"{path} cannot be read: {error}. docs/operations.md has an example.") from error
    try:
        return Settings.model_validate(parsed)
    except ValidationError as error:
        faults = "; ".join(_fault(one["loc"], one["msg"]) for one in error.errors(include_input=False))
        raise UsageError(f"{path}: {faults}. docs/operations.md lists what can be set.") from error


def _fault(place: tuple[int | str, ...], message: str) -> str:
    """A fault in words, without the value, which may be a secret.

    >>> _fault(("alerts", "webhook", 0, "url"), "Value error, give either url or url_env")
    'alerts.webhook[1].url: give either url or url_env'
    """
    name = "".join(f"[{part + 1}]" if isinstance(part, int) else f".{part}" for part in place).removeprefix(".")
    text = message.removeprefix("Value error, ")
    return f"{name}: {text[:1].lower()}{text[1:]}"


def _digest(*parts: object) -> str:
    return hashlib.blake2b(repr(parts).encode(), digest_size=8).hexdigest()


def _environment(name: str) -> str:
    if value := os.environ.get(name):
        return value
    raise UsageError(f"The environment variable {name}, which operations.toml names, is not set for this process.")


def _checked_url(url: str, name: str) -> str:
    parts = urlsplit(url)
    if parts.scheme not in ("http", "https") or not parts.hostname:
        # Pydantic takes a ValueError for a fault of the file; UsageError would pass it by.
        raise ValueError(f"{name} has to be an address that begins with https:// or http://")
    return url
