"""Who may talk to our servers: the guard in front of a plain application."""

from __future__ import annotations

import asyncio
import base64
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from http.cookies import SimpleCookie
from typing import Any

import pytest

from sweepscope.pipeline.io.web_access import Access, Guard, Message, Receive, Scope, Send, is_known_host, with_token

HOST = "127.0.0.1:8501"
ORIGIN = f"http://{HOST}"


async def results(scope: Scope, receive: Receive, send: Send) -> None:
    """The application behind the guard."""
    if scope["type"] == "websocket":
        await send({"type": "websocket.accept"})
        return
    await send({"type": "http.response.start", "status": 200, "headers": []})
    await send({"type": "http.response.body", "body": b"results"})


@dataclass
class Answer:
    status: int
    text: str
    headers: dict[str, str]


@dataclass
class Client:
    """Sends requests as a browser would, cookies included."""

    access: Access = field(default_factory=Access)
    options: dict[str, Any] = field(default_factory=dict)
    cookies: SimpleCookie = field(default_factory=SimpleCookie)

    def _sent(self, kind: str, path: str, headers: dict[str, str], **scope: str) -> list[Message]:
        sent: list[Message] = []

        async def send(message: Message) -> None:
            sent.append(message)

        async def receive() -> Message:
            return {"type": f"{kind}.disconnect"}

        route, _, query = path.partition("?")
        cookie = {"Cookie": "; ".join(f"{m.key}={m.value}" for m in self.cookies.values())} if self.cookies else {}
        pairs = {"Host": HOST, **cookie, **headers}.items()
        raw = [(name.lower().encode(), value.encode()) for name, value in pairs]
        details = {"type": kind, "path": route, "query_string": query.encode(), "headers": raw, **scope}
        guard = Guard(results, self.access, **self.options)
        # In a thread: the browser of other tests leaves an event loop running in this one.
        with ThreadPoolExecutor(1) as thread:
            thread.submit(lambda: asyncio.run(guard(details, receive, send))).result()  # type: ignore[arg-type]
        return sent

    def ask(self, method: str, path: str, **headers: str) -> Answer:
        start, *rest = self._sent("http", path, headers, method=method)
        given = {name.decode(): value.decode() for name, value in start["headers"]}
        self.cookies.load(given.get("set-cookie", ""))
        return Answer(start["status"], b"".join(part["body"] for part in rest).decode(), given)

    def get(self, path: str = "/", **headers: str) -> Answer:
        return self.ask("GET", path, **headers)

    def post(self, path: str = "/", **headers: str) -> Answer:
        return self.ask("POST", path, **headers)

    def connects(self, **headers: str) -> bool:
        (message,) = self._sent("websocket", "/stream", headers)
        return message["type"] == "websocket.accept"


def basic(password: str) -> dict[str, str]:
    return {"Authorization": "Basic " + base64.b64encode(f"anyone:{password}".encode()).decode()}


@pytest.mark.parametrize("host", ["evil.example", "evil.example:8501", "127.0.0.1.evil.example", "", "[evil"])
def test_a_foreign_host_is_refused(host: str) -> None:
    answer = Client().get(Host=host)
    assert answer.status == 403
    assert "results" not in answer.text
    assert "--allow-host" in answer.text


@pytest.mark.parametrize("host", ["127.0.0.1:8501", "localhost:9000", "[::1]:8501", "10.1.2.3", "sweeps.example.org"])
def test_addresses_and_names_that_were_given_are_served(host: str) -> None:
    assert Client(Access(names=("sweeps.example.org",))).get(Host=host).text == "results"


@pytest.mark.parametrize("origin", ["http://evil.example", "null", "http://127.0.0.1:3000", "http://localhost:8501"])
def test_a_page_of_another_site_is_refused(origin: str) -> None:
    assert Client().post(Origin=origin).status == 403
    assert not Client().connects(Origin=origin)


def test_our_own_page_is_served() -> None:
    assert Client().post(Origin=ORIGIN).text == "results"
    assert Client().connects(Origin=ORIGIN)


def test_a_proxy_serves_the_page_under_a_name_that_was_allowed() -> None:
    ours = Client(Access(names=("sweeps.example.org",)))
    assert ours.post(Origin="https://sweeps.example.org").text == "results"


def test_without_the_password_nothing_is_served(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sweepscope.pipeline.io.web_access._WRONG_PASSWORD_S", 0.0)
    ours = Client(Access(password="right"))
    for headers in ({}, basic("wrong"), {"Authorization": "Basic ???"}, {"Cookie": "sweepscope_access=right"}):
        answer = ours.get(**headers)
        assert (answer.status, "results" in answer.text) == (401, False)
        assert "set-cookie" not in answer.headers
    assert not ours.connects()


def test_with_the_password_a_cookie_opens_what_follows() -> None:
    ours = Client(Access(password="right"))
    answer = ours.get(**basic("right"))
    assert answer.text == "results"
    assert {"HttpOnly", "SameSite=Strict"} <= set(answer.headers["set-cookie"].split("; "))
    assert "right" not in answer.headers["set-cookie"]
    assert ours.get().text == "results"
    assert ours.connects()


def test_a_token_in_the_address_leaves_it_at_once() -> None:
    ours = Client(Access(password="a token"))
    answer = ours.get(with_token("", "a token"))
    assert (answer.status, answer.headers["location"]) == (303, "/")
    assert ours.get(answer.headers["location"]).text == "results"


def test_a_rule_is_asked_with_the_query() -> None:
    seen = []

    def refuse(method: str, path: str, headers: object) -> str:
        seen.append((method, path))
        return "No."

    assert Client(options={"rule": refuse}).get("/?query=1").text == "No.\n"
    assert seen == [("GET", "/?query=1")]


def test_pages_cannot_be_framed_by_others() -> None:
    assert Client().get().headers["content-security-policy"] == "frame-ancestors 'self'"


def test_what_a_process_is_told_comes_back(monkeypatch: pytest.MonkeyPatch) -> None:
    for access in (Access(), Access(names=("a.example", "b"), password="päss word")):
        for name, value in access.to_environment().items():
            monkeypatch.setenv(name, value)
        assert Access.from_environment() == access


def test_no_name_is_looked_up() -> None:
    code = """
import sys
from sweepscope.pipeline.io.web_access import is_known_host
sys.addaudithook(lambda event, args: print(event) if event in ("socket.getaddrinfo", "socket.connect") else None)
print([is_known_host(host) for host in ("localhost", "evil.example")])
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "[True, False]\n"
    assert is_known_host("localhost")
