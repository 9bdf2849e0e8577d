"""The one format of the portal's errors (docs/errors.md), and the checks before every route."""

from typing import Any

import pytest
from fastapi import FastAPI
from tests.support.portal import Org, RunningPortal
from tests.support.watched import Watched

from gatehouse.administration.shell import Shell


@pytest.mark.parametrize(
    ("method", "path", "status", "error"),
    [
        ("GET", "/nowhere", 404, "not_found"),
        ("GET", "/v1/nowhere", 404, "not_found"),
        # These paths have other error forms at the gateway. They do not exist at the portal.
        ("POST", "/v1/chat/completions", 404, "not_found"),
        ("POST", "/v1/messages", 404, "not_found"),
        ("POST", "/oauth/token", 404, "not_found"),
        ("PUT", "/v1/orgs", 405, "invalid_request"),
        ("DELETE", "/metrics", 405, "invalid_request"),
        ("POST", "/v1/orgs", 401, "unauthorized"),
    ],
)
async def test_an_error_has_a_code_by_its_status_and_a_detail(
    portal: RunningPortal, method: str, path: str, status: int, error: str
) -> None:
    answer = await portal.anonymous.request(method, path)
    assert (answer.status_code, answer.json()["error"]) == (status, error)
    assert set(answer.json()) == {"error", "detail"}
    assert answer.headers["content-type"] == "application/json"
    assert ("allow" in answer.headers) == (status == 405)


@pytest.mark.parametrize(
    ("content", "status", "error"),
    [(b"{", 400, "invalid_request"), (b"[]", 422, "validation_error"), (b"", 422, "validation_error"),
     (b"\xff", 400, "invalid_request"), (b" " * (2 * 1024**2), 400, "invalid_request"),
     (b" " * (2 * 1024**2 + 1), 413, "request_too_large")],
    ids=["cut", "a list", "empty", "no text", "as large as allowed", "larger"],
)  # fmt: skip
async def test_a_bad_body_is_reported_in_the_same_format(
    portal: RunningPortal, content: bytes, status: int, error: str
) -> None:
    answer = await portal.admin.post("/v1/orgs", content=content, headers={"Content-Type": "application/json"})
    assert (answer.status_code, answer.json()["error"]) == (status, error)


async def test_a_body_without_a_length_is_bounded_too(portal: RunningPortal) -> None:
    async def endless() -> Any:
        for _ in range(300):
            yield b" " * 10_000

    answer = await portal.admin.post("/v1/orgs", content=endless())
    assert answer.status_code == 413


async def test_an_internal_error_discloses_nothing(portal: RunningPortal) -> None:
    front = portal.app._app if isinstance(portal.app, Watched) else portal.app
    assert isinstance(front, Shell)
    app = front._app
    assert isinstance(app, FastAPI)

    async def broken() -> None:
        raise RuntimeError("the inside of it")

    app.add_api_route("/broken", broken, include_in_schema=False)
    answer = await portal.anonymous.get("/broken")
    assert (answer.status_code, answer.json()["error"]) == (500, "internal_error")
    assert "inside" not in answer.text


async def test_every_response_has_the_requests_id_and_is_not_cacheable(portal: RunningPortal, org: Org) -> None:
    for client, path in ((org.client, org.path), (portal.anonymous, "/v1/nowhere")):
        answer = await client.get(path, headers={"X-Request-Id": "mine-1"})
        assert (answer.headers["X-Request-Id"], answer.headers["Cache-Control"]) == ("mine-1", "no-store")


async def test_the_probes_report_alive_and_ready(portal: RunningPortal) -> None:
    for path in ("/api/health/live", "/api/health/ready"):
        answer = await portal.anonymous.get(path)
        assert (answer.status_code, answer.json()) == (200, {"status": "ok"})


async def test_metrics_are_shown_only_to_permitted_addresses(portal: RunningPortal) -> None:
    refused = await portal.anonymous.get("/metrics", headers={"X-Forwarded-For": "203.0.113.9"})
    assert (refused.status_code, refused.json()["error"]) == (403, "forbidden")
    response = await portal.anonymous.get("/metrics", headers={"X-Forwarded-For": "10.0.0.9"})
    assert response.status_code == 200
    assert 'portal_http_requests_total{method="POST",route="/v1/orgs",status="401"}' in response.text


async def test_the_documentation_runs_no_foreign_script(portal: RunningPortal) -> None:
    page = await portal.anonymous.get("/docs")
    assert page.status_code == 200
    assert "script-src 'self'" in page.headers["content-security-policy"]
    assert (await portal.anonymous.get("/docs/openapi.json")).json()["openapi"] == "3.0.3"


async def test_an_unknown_path_is_a_page_in_a_browser(portal: RunningPortal) -> None:
    answer = await portal.anonymous.get("/nowhere", headers={"Accept": "text/html,*/*;q=0.8"})
    assert (answer.status_code, answer.headers["content-type"]) == (404, "text/html; charset=utf-8")
    assert "There is no such page." in answer.text
