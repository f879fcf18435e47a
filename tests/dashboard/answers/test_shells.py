"""Both ways to the questions: the MCP server, asked by the SDK's own client, and the JSON API with its OpenAPI page."""

from __future__ import annotations

import os
import re
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import anyio
import pytest
from mcp import Client, StdioServerParameters
from starlette.testclient import TestClient

from sweepscope.dashboard.answers.questions import questions
from sweepscope.dashboard.app import api
from sweepscope.pipeline.io.children import import_path
from sweepscope.pipeline.store.home import Home
from tests.dashboard.app_pages.grid_home import make_home, small_sweep

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_home(tmp_path_factory.mktemp("shells") / "home", small_sweep())


@pytest.fixture(scope="module")
def client(home: Path) -> TestClient:
    return TestClient(api.api(Home(home)))


def conversation(home: Path, *calls: tuple[str, dict[str, Any]]) -> tuple[str, list[Any], list[Any]]:
    """The instructions, tools and results of `sweepscope mcp`, started as a client starts it."""

    async def talk() -> tuple[str, list[Any], list[Any]]:
        server = StdioServerParameters(
            command=sys.executable,
            args=["-P", "-m", "sweepscope", "mcp", "--home", str(home)],
            env={"PYTHONPATH": os.pathsep.join(import_path())},
        )
        async with Client(server) as asked:
            tools = (await asked.list_tools()).tools
            results = [await asked.call_tool(name, arguments) for name, arguments in calls]
            return asked.instructions or "", tools, results

    # in a thread of its own: Playwright's loop may run in this one
    with ThreadPoolExecutor(1) as thread:
        return thread.submit(anyio.run, talk).result()


def test_an_agent_is_answered_what_the_store_has(home: Path) -> None:
    guide, tools, results = conversation(
        home,
        ("best_configs", {"nodes": 1}),
        ("best_configs", {"model": "none"}),
        ("sql", {"query": "SELECT count(*) AS n FROM runs"}),
        ("sql", {"query": "DELETE FROM runs"}),
    )
    asked = questions(home)
    assert "overview" in guide
    assert [tool.name for tool in tools] == [question.__name__ for question in asked]
    assert all(tool.annotations.read_only_hint and tool.description for tool in tools)
    assert all(
        given["description"]
        for tool in tools
        for given in tool.input_schema["properties"].values()
        if "description" in given
    )
    best, unknown, counted, deleted = results
    assert best.structured_content == asked[1](nodes=1).model_dump(mode="json")
    assert unknown.is_error
    assert "There is no model 'none'" in unknown.content[0].text
    assert counted.structured_content["tables"][0]["rows"] == [{"n": 5}]
    assert deleted.is_error
    assert "Only a query that reads" in deleted.content[0].text


def test_an_agent_without_a_store_reads_what_to_run(tmp_path: Path) -> None:
    _, _, (result,) = conversation(tmp_path, ("overview", {}))
    assert result.is_error
    assert "sweepscope ingest PATH" in result.content[0].text


def test_an_address_answers_as_the_question_does(home: Path, client: TestClient) -> None:
    answer = client.get("/best_configs", params={"nodes": 1})
    assert answer.status_code == 200
    assert answer.json() == questions(home)[1](nodes=1).model_dump(mode="json")


@pytest.mark.parametrize(
    ("path", "status", "message"),
    [
        ("/best_configs?nodes=3", 400, "There is no nodes '3'"),
        ("/best_configs?nodes=x", 422, "valid integer"),
        ("/sql?query=DROP%20TABLE%20runs", 400, "Only a query that reads"),
        ("/nothing", 404, "Not Found"),
    ],
)
def test_an_error_has_a_status_and_a_remedy(client: TestClient, path: str, status: int, message: str) -> None:
    answer = client.get(path)
    assert (answer.status_code, message in answer.text) == (status, True), answer.text


def test_nothing_but_reading_is_offered(client: TestClient) -> None:
    paths = client.get("/openapi.json").json()["paths"]
    assert {method for operations in paths.values() for method in operations} == {"get"}
    assert client.post("/sql", params={"query": "select 1"}).status_code == 405


def test_the_openapi_page_loads_nothing_from_elsewhere(client: TestClient) -> None:
    page = client.get("/docs").text
    assert not re.findall(r'(?:src|href)="(?:https?:)?//', page)
    for path in re.findall(r'(?:src|href)="(/[^"]+)"', page):
        assert client.get(path).status_code == 200, path


def test_a_home_without_a_store_is_unavailable(tmp_path: Path) -> None:
    answer = TestClient(api.api(Home(tmp_path))).get("/overview")
    assert (answer.status_code, "sweepscope ingest PATH" in answer.json()["error"]) == (503, True)
