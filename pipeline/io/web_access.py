"""Who may talk to our web servers: an ASGI wrapper that checks host, origin and password before an application does.

A browser lets any page that somebody visits send requests to servers of the same machine. Two headers give such a
request away: `Origin` names the page, and `Host` names the address that was asked for, which after DNS rebinding is
the page's own. Anybody else on the network is kept out by a password, or by listening on the loopback address only.
"""

from __future__ import annotations

import asyncio
import base64
import binascii
import hashlib
import hmac
import ipaddress
import json
import os
import socket
from collections.abc import Awaitable, Callable, Mapping, MutableMapping
from dataclasses import dataclass
from http.cookies import CookieError, SimpleCookie
from typing import Any
from urllib.parse import parse_qs, quote, urlsplit

ACCESS_VARIABLE = "SWEEPSCOPE_ACCESS"
"""Hands a server's process its Access (without the password), as JSON."""

PASSWORD_VARIABLE = "SWEEPSCOPE_PASSWORD"  # noqa: S105 -- the name of a variable
"""The password that pages ask for; the environment, unlike a command line, is hidden from other users."""

_WRONG_PASSWORD_S = 1.0
_HEADERS = {
    b"content-security-policy": b"frame-ancestors 'self'",
    b"x-content-type-options": b"nosniff",
    b"referrer-policy": b"same-origin",
}

Scope = MutableMapping[str, Any]
Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
Application = Callable[[Scope, Receive, Send], Awaitable[None]]
Rule = Callable[[str, str, Mapping[str, str]], str | None]
"""Method, path with query, and headers of a request to the reason why it is refused, or None."""


@dataclass(frozen=True)
class Access:
    """What a server answers to: names beside addresses and `localhost`, and the password, if any."""

    names: tuple[str, ...] = ()
    password: str | None = None

    @classmethod
    def from_environment(cls) -> Access:
        """What `to_environment` of the parent process wrote."""
        fields = json.loads(os.environ.get(ACCESS_VARIABLE, "{}"))
        return cls(names=tuple(fields.get("names", ())), password=os.environ.get(PASSWORD_VARIABLE) or None)

    def to_environment(self) -> dict[str, str]:
        """Variables for a server's process."""
        return {ACCESS_VARIABLE: json.dumps({"names": self.names}), PASSWORD_VARIABLE: self.password or ""}


def is_loopback(host: str) -> bool:
    """Whether a server that listens at `host` is out of reach for other machines.

    >>> is_loopback("127.0.0.1"), is_loopback("localhost"), is_loopback("::1"), is_loopback("0.0.0.0")
    (True, True, True, False)
    """
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def is_known_host(header: str, names: tuple[str, ...] = ()) -> bool:
    """Whether a `Host` header can only have come from somebody who meant this server.

    Addresses do: a page cannot make a browser believe that its own name is one. So do `localhost`, this machine's name
    and `names`. No name is looked up.

    >>> [is_known_host(host) for host in ("127.0.0.1:8501", "[::1]:8501", "localhost", "evil.example:8501", "")]
    [True, True, True, False, False]
    >>> is_known_host("sweeps.example.org", names=("sweeps.example.org",))
    True
    """
    name = _host_of(header)
    try:
        ipaddress.ip_address(name)
    except ValueError:
        known = {"localhost", socket.gethostname().lower(), *(known.lower() for known in names)}
        return name in known
    return True


def _host_of(header: str) -> str:
    try:
        return (urlsplit(f"//{header}").hostname or "").lower().removesuffix(".")
    except ValueError:
        return ""


class Guard:
    """An ASGI application that hands on what may pass, and answers the rest itself.

    Args:
        application: the one behind.
        access: host names and password.
        rule: what is refused besides.
    """

    def __init__(self, application: Application, access: Access, rule: Rule = lambda *_: None) -> None:
        self._application, self._access, self._rule = application, access, rule

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handle one connection."""
        if scope["type"] not in ("http", "websocket"):
            await self._application(scope, receive, send)
            return
        headers = {name.decode("latin-1").lower(): value.decode("latin-1") for name, value in scope["headers"]}
        if refusal := self._refusal(scope, headers):
            await _answer(scope, send, 403, refusal)
            return
        password = self._access.password
        is_new = password is not None and not _has_cookie(headers, password)
        if password is not None and is_new:
            given = _password_of(scope, headers)
            if not hmac.compare_digest(given.encode(), password.encode()):
                if given:
                    await asyncio.sleep(_WRONG_PASSWORD_S)
                await _answer(scope, send, 401, "This page asks for its password.", _CHALLENGE)
                return
        added = {**_HEADERS, **(_cookie(password) if password is not None and is_new else {})}
        if is_new and scope["type"] == "http" and "token" in parse_qs(_query(scope)):
            # The token leaves the address bar, from where it would get into histories and screenshots.
            await _answer(scope, send, 303, "", {**added, b"location": scope["path"].encode()})
            return

        async def send_with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                present = {name.lower() for name, _ in message.get("headers", ())}
                missing = [(name, value) for name, value in added.items() if name not in present]
                message["headers"] = [*message.get("headers", ()), *missing]
            await send(message)

        await self._application(scope, receive, send_with_headers)

    def _refusal(self, scope: Scope, headers: Mapping[str, str]) -> str | None:
        host = headers.get("host", "")
        if not is_known_host(host, self._access.names):
            return (
                f"This server does not answer to the name {_host_of(host)[:100]!r}. Open it by its address, or start "
                "it with --allow-host NAME when a proxy serves it under that name."
            )
        origin = headers.get("origin")
        if origin is not None and not self._is_own(origin, host):
            return "This request comes from a page of another site."
        if scope["type"] == "websocket":
            return None
        query = _query(scope)
        return self._rule(scope["method"], f"{scope['path']}?{query}" if query else scope["path"], headers)

    def _is_own(self, origin: str, host: str) -> bool:
        netloc = urlsplit(origin).netloc.lower()
        return netloc == host.lower() or (bool(netloc) and _host_of(netloc) in self._access.names)


_COOKIE = "sweepscope_access"
_CHALLENGE = {b"www-authenticate": b'Basic realm="sweepscope", charset="UTF-8"'}


def _query(scope: Scope) -> str:
    return bytes(scope.get("query_string", b"")).decode("latin-1")


def _cookie(password: str) -> dict[bytes, bytes]:
    return {b"set-cookie": f"{_COOKIE}={_proof(password)}; Path=/; HttpOnly; SameSite=Strict".encode()}


def _proof(password: str) -> str:
    """What the cookie holds: it cannot be made without the password, nor the password from it."""
    return hmac.new(password.encode(), b"sweepscope access", hashlib.sha256).hexdigest()


def _has_cookie(headers: Mapping[str, str], password: str) -> bool:
    try:
        cookies = SimpleCookie(headers.get("cookie", ""))
    except CookieError:
        return False
    return _COOKIE in cookies and hmac.compare_digest(cookies[_COOKIE].value, _proof(password))


def _password_of(scope: Scope, headers: Mapping[str, str]) -> str:
    """The password of an `Authorization` header (RFC 7617; any user name) or of `?token=`, "" without."""
    kind, _, credentials = headers.get("authorization", "").partition(" ")
    if kind.lower() == "basic":
        try:
            return base64.b64decode(credentials, validate=True).decode().partition(":")[2]
        except (binascii.Error, UnicodeDecodeError):
            return ""
    return parse_qs(_query(scope)).get("token", [""])[0]


def with_token(url: str, token: str | None) -> str:
    """Address that opens without the password; the same one where there is no token."""
    return f"{url}/?token={quote(token)}" if token else url


async def _answer(
    scope: Scope, send: Send, status: int, text: str, headers: Mapping[bytes, bytes] | None = None
) -> None:
    if scope["type"] == "websocket":
        await send({"type": "websocket.close", "code": 1008, "reason": text[:100]})
        return
    given = [(b"content-type", b"text/plain; charset=utf-8"), *(headers or {}).items()]
    await send({"type": "http.response.start", "status": status, "headers": given})
    await send({"type": "http.response.body", "body": f"{text}\n".encode()})
