"""One alert to one receiver: JSON by HTTP POST, or a mail. Errors name the receiver without what may be secret."""

from __future__ import annotations

import json
import smtplib
import socket
import ssl
from email.message import EmailMessage
from email.utils import format_datetime
from http.client import HTTPException
from typing import Any
from urllib.error import HTTPError, URLError
from urllib.request import HTTPRedirectHandler, Request, build_opener

from sweepscope.pipeline.errors import SweepscopeError
from sweepscope.pipeline.operations.outbox import Delivery
from sweepscope.pipeline.operations.settings import Mail, Receiver, Webhook

TIMEOUT_S = 10.0


class DeliveryError(SweepscopeError):
    """A receiver did not take an alert. The message has the receiver's label and the reason."""


class _NoRedirects(HTTPRedirectHandler):
    """A webhook that has moved is an error: a redirect would make a GET of our POST."""

    def redirect_request(self, *_: Any) -> None:
        """Never follow."""


def deliver(delivery: Delivery, receiver: Receiver, dashboard_url: str | None = None) -> None:
    """Hand one alert to its receiver.

    Args:
        delivery: what to send.
        receiver: where to.
        dashboard_url: address of the dashboard, for links.

    Raises:
        DeliveryError: it was not taken.
        UsageError: a variable that holds an address or a password is not set.
    """
    try:
        if isinstance(receiver, Webhook):
            _post(receiver, payload(delivery, dashboard_url))
        else:
            _mail(receiver, delivery, as_text(delivery, dashboard_url))
    except HTTPError as error:
        error.close()
        raise DeliveryError(f"{receiver.label} answered {error.code}") from None
    except URLError as error:
        raise DeliveryError(f"{receiver.label}: {_plain(error.reason)}") from None
    except smtplib.SMTPResponseException as error:
        raise DeliveryError(f"{receiver.label} answered {error.smtp_code}") from None
    except (OSError, HTTPException, smtplib.SMTPException, ValueError) as error:
        raise DeliveryError(f"{receiver.label}: {_plain(error)}") from None


def payload(delivery: Delivery, dashboard_url: str | None) -> dict[str, Any]:
    """What a webhook gets; `text` is what chat programs show."""
    message = delivery.message
    return {
        "text": as_text(delivery, dashboard_url),
        "id": delivery.id,
        "kind": message.kind,
        "title": message.title,
        "items": [
            {"text": text, "run_id": run_id, "url": _run_url(run_id, dashboard_url)} for text, run_id in message.items
        ],
        "more": message.more,
        "made_at": delivery.made_at.isoformat(),
    }


def as_text(delivery: Delivery, dashboard_url: str | None) -> str:
    """Title, items and links, a line each."""
    message = delivery.message
    lines = [f"sweepscope: {message.title}"]
    for text, run_id in message.items:
        url = _run_url(run_id, dashboard_url)
        lines.append(f"- {text}{f' {url}' if url else ''}")
    if message.more:
        lines.append(f"- and {message.more:,} more")
    if dashboard_url:
        lines.append(f"{dashboard_url.rstrip('/')}/overview")
    return "\n".join(lines)


def _run_url(run_id: str | None, dashboard_url: str | None) -> str | None:
    return f"{dashboard_url.rstrip('/')}/run?run={run_id}" if run_id and dashboard_url else None


def _post(hook: Webhook, value: dict[str, Any]) -> None:
    headers = {"content-type": "application/json", "user-agent": "sweepscope", "idempotency-key": value["id"]}
    body = json.dumps(value, ensure_ascii=False).encode()
    request = Request(hook.address(), body, headers, method="POST")  # noqa: S310 -- settings take http and https only
    with build_opener(_NoRedirects).open(request, timeout=TIMEOUT_S):
        pass


def _mail(mail: Mail, delivery: Delivery, text: str) -> None:
    message = EmailMessage()
    message["Subject"] = f"sweepscope: {delivery.message.title}"
    message["From"], message["To"] = mail.sender, ", ".join(mail.to)
    message["Date"] = format_datetime(delivery.made_at)
    message["Message-ID"] = f"<{delivery.id}@{socket.gethostname() or 'sweepscope'}>"
    message.set_content(text)
    password, context = mail.password(), ssl.create_default_context()
    if mail.security == "tls":
        server: smtplib.SMTP = smtplib.SMTP_SSL(mail.host, mail.port, timeout=TIMEOUT_S, context=context)
    else:
        server = smtplib.SMTP(mail.host, mail.port, timeout=TIMEOUT_S)
    with server:
        if mail.security == "starttls":
            server.starttls(context=context)
        if mail.user is not None and password is not None:
            server.login(mail.user, password)
        server.send_message(message)


def _plain(error: object) -> str:
    """What went wrong without addresses: those of webhooks are secret."""
    if isinstance(error, OSError) and error.strerror:
        return error.strerror
    return "timed out" if isinstance(error, TimeoutError) else type(error).__name__
