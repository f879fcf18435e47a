"""Receivers of alerts on the loopback address: an HTTP server and an SMTP server that keep what they get."""

from __future__ import annotations

import json
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from email import message_from_bytes
from email.message import Message
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from aiosmtpd.controller import Controller


@dataclass
class Hooks:
    """What was posted; `answers` are the next status codes, 200 when there are none left."""

    url: str = ""
    got: list[dict[str, Any]] = field(default_factory=list)
    answers: list[int] = field(default_factory=list)


@contextmanager
def web_receiver() -> Iterator[Hooks]:
    hooks = Hooks()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["content-length"]))
            status = hooks.answers.pop(0) if hooks.answers else 200
            if status == 200:
                assert self.headers["content-type"] == "application/json"
                hooks.got.append(json.loads(body))
            self.send_response(status)
            if status == 302:
                self.send_header("location", hooks.url)
            self.end_headers()

        def log_message(self, *_: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    hooks.url = f"http://127.0.0.1:{server.server_port}/services/T0/hidden-part"
    try:
        yield hooks
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


@dataclass
class Mailbox:
    """Mails that were taken; `refusal` is what the server says instead, once it is set."""

    port: int = 0
    got: list[Message] = field(default_factory=list)
    refusal: str | None = None

    async def handle_DATA(self, _server: Any, _session: Any, envelope: Any) -> str:
        if self.refusal:
            return self.refusal
        self.got.append(message_from_bytes(envelope.content))
        return "250 taken"


@contextmanager
def mail_receiver() -> Iterator[Mailbox]:
    mailbox = Mailbox()
    with socket.socket() as probe:  # the controller connects to the port that it was given
        probe.bind(("127.0.0.1", 0))
        mailbox.port = probe.getsockname()[1]
    controller = Controller(mailbox, hostname="127.0.0.1", port=mailbox.port)
    controller.start()
    try:
        yield mailbox
    finally:
        controller.stop()
