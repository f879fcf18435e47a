"""The first document has the server's address and the style sheet; other answers pass unchanged."""

from __future__ import annotations

import pytest
from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.middleware.gzip import GZipMiddleware
from starlette.responses import HTMLResponse, PlainTextResponse, Response
from starlette.routing import Route
from starlette.testclient import TestClient

from sweepscope.dashboard.app.document import SCRIPT, Document
from sweepscope.dashboard.format.style_sheet import sheet

PAGE = "<!DOCTYPE html><html><head><title>x</title></head><body></body></html>"


def _page(_request: object) -> Response:
    return HTMLResponse(PAGE, headers={"etag": '"1"'})


def _text(_request: object) -> Response:
    return PlainTextResponse(PAGE, headers={"etag": '"1"'})


def _missing(_request: object) -> Response:
    return HTMLResponse(PAGE, status_code=404)


@pytest.fixture
def client() -> TestClient:
    routes = [Route("/best", _page), Route("/text", _text), Route("/missing", _missing)]
    app = Starlette(routes=routes, middleware=[Middleware(GZipMiddleware, minimum_size=1)])
    return TestClient(Document(app), headers={"accept": "text/html,*/*;q=0.8"})


def test_a_document_has_the_script_in_its_head_and_the_style_sheet_before_what_pages_draw(client: TestClient) -> None:
    answer = client.get("/best")
    with_script = PAGE.replace("<head>", f"<head>{SCRIPT.decode()}")
    assert answer.text == with_script.replace("<body>", f"<body><style>{sheet()}</style>")
    assert answer.headers["content-length"] == str(len(answer.content))
    assert "etag" not in answer.headers


@pytest.mark.parametrize("path", ["/text", "/missing"])
def test_other_answers_pass_unchanged(client: TestClient, path: str) -> None:
    assert client.get(path).text == PAGE


def test_what_no_visit_asks_for_passes_unchanged(client: TestClient) -> None:
    assert client.get("/best", headers={"accept": "application/json"}).text == PAGE


def test_a_head_request_passes_unchanged(client: TestClient) -> None:
    assert client.head("/best").headers["etag"] == '"1"'


def test_tags_are_those_of_the_page() -> None:
    app = Starlette(routes=[Route("/sweeps/best", _page)])
    client = TestClient(Document(app, tags=lambda page: f"<i>{page}</i>"), headers={"accept": "text/html"})
    assert client.get("/sweeps/best").text.endswith("<i>best</i></body></html>")
