"""Dagster's webserver changes nothing at the wish of a page that somebody visits."""

from __future__ import annotations

import pytest

from sweepscope.pipeline.orchestration.webserver import refusal

JSON = {"content-type": "application/json; charset=utf-8"}


@pytest.mark.parametrize(
    ("method", "path", "headers"),
    [
        ("GET", "/graphql?query=mutation{launchRun}", {}),
        ("GET", "/graphql/?x=1&query=mutation{launchRun}", {}),
        ("POST", "/graphql", {"content-type": "text/plain"}),
        ("POST", "/graphql", {"content-type": "application/x-www-form-urlencoded"}),
        ("POST", "/graphql", {}),
        ("POST", "/graphql?query=mutation{launchRun}", JSON),
        ("POST", "/report_asset_materialization/store", JSON),
        ("DELETE", "/graphql", JSON),
    ],
)
def test_what_any_page_can_have_a_browser_send_is_refused(method: str, path: str, headers: dict[str, str]) -> None:
    assert refusal(method, path, headers)


@pytest.mark.parametrize(
    ("method", "path", "headers"),
    [("POST", "/graphql", JSON), ("GET", "/runs?q=query%3Da", {}), ("GET", "/graphql", {}), ("HEAD", "/", {})],
)
def test_what_its_own_pages_send_passes(method: str, path: str, headers: dict[str, str]) -> None:
    assert refusal(method, path, headers) is None
