"""How the files of the console are served."""

import gzip
from collections.abc import Iterator
from pathlib import Path

import httpx2
import pytest
from tests.support.platform import RunningPlatform

from gatehouse.platform.console import routes
from gatehouse.platform.console.routes import ConsoleFiles

PAGE = b"<!doctype html><title>the application</title>"
SHARED_PAGE = b"<!doctype html><title>a shared conversation</title>"
SCRIPT = b"console.log('" + b"x" * 1000 + b"')"
POLICY = {
    "default-src 'none'", "script-src 'self'", "style-src 'self'", "connect-src 'self'", "img-src 'self' data:",
    "font-src 'self'", "frame-ancestors 'none'", "base-uri 'none'", "form-action 'self'",
    "require-trusted-types-for 'script'", "trusted-types 'none'",
}  # fmt: skip


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    built = tmp_path / "built"
    (built / "assets").mkdir(parents=True)
    (tmp_path / "secret.txt").write_text("a secret beside the files")
    (built / "index.html").write_bytes(PAGE)
    (built / "shared.html").write_bytes(SHARED_PAGE)
    (built / "icon.svg").write_text("<svg/>")
    (built / "assets" / "index-4fJ0.js").write_bytes(SCRIPT)
    (built / "assets" / "index-4fJ0.js.gz").write_bytes(gzip.compress(SCRIPT))
    (built / "assets" / "inter-4fJ0.woff2").write_bytes(b"wOF2")
    return built


@pytest.fixture
def client(platform: RunningPlatform, folder: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[httpx2.AsyncClient]:
    monkeypatch.setattr(routes, "_console_files", ConsoleFiles(folder))
    return platform.anonymous


@pytest.mark.parametrize("path", ["/console", "/console/", "/console/keys", "/console/requests/4f?status=error&x=1"])
async def test_the_application_answers_on_all_of_its_paths(client: httpx2.AsyncClient, path: str) -> None:
    answer = await client.get(path)
    assert (answer.status_code, answer.content) == (200, PAGE)
    assert answer.headers["content-type"] == "text/html; charset=utf-8"
    assert answer.headers["cache-control"] == "no-cache"


async def test_the_page_of_a_shared_conversation_is_not_the_application(client: httpx2.AsyncClient) -> None:
    answer = await client.get("/console/shared/4b7c1f0e-0000-4000-8000-000000000000")
    assert (answer.status_code, answer.content) == (200, SHARED_PAGE)
    assert answer.headers["cache-control"] == "no-cache"


@pytest.mark.parametrize(
    "path",
    ["/console", "/console/keys", "/console/shared/x", "/console/assets/index-4fJ0.js", "/console/icon.svg"],
)
async def test_every_file_has_the_security_headers(client: httpx2.AsyncClient, path: str) -> None:
    headers = (await client.get(path)).headers
    assert set(headers["content-security-policy"].split("; ")) == POLICY
    assert headers["x-content-type-options"] == "nosniff"
    assert headers["x-frame-options"] == "DENY"
    assert headers["referrer-policy"] == "same-origin"
    assert headers["cross-origin-opener-policy"] == "same-origin"


async def test_files_with_a_hash_in_their_name_are_kept_for_ever(client: httpx2.AsyncClient) -> None:
    answer = await client.get("/console/assets/inter-4fJ0.woff2")
    assert answer.headers["cache-control"] == "public, max-age=31536000, immutable"
    assert answer.headers["content-type"] == "font/woff2"
    assert (await client.get("/console/icon.svg")).headers["cache-control"] == "no-cache"


async def test_a_browser_that_has_the_file_gets_none(client: httpx2.AsyncClient) -> None:
    etag = (await client.get("/console")).headers["etag"]
    again = await client.get("/console", headers={"If-None-Match": etag})
    assert (again.status_code, again.content) == (304, b"")
    assert (await client.get("/console", headers={"If-None-Match": 'W/"other"'})).status_code == 200


@pytest.mark.parametrize(
    ("accepted", "coding"),
    [("gzip, deflate, br", "gzip"), ("GZIP", "gzip"), ("gzip;q=0, br", None), ("identity", None), ("", None)],
)
async def test_the_compressed_file_is_sent_to_clients_that_accept_it(
    client: httpx2.AsyncClient, accepted: str, coding: str | None
) -> None:
    answer = await client.get("/console/assets/index-4fJ0.js", headers={"Accept-Encoding": accepted})
    assert answer.content == SCRIPT
    assert answer.headers.get("content-encoding") == coding
    assert answer.headers["vary"] == "Accept-Encoding"
    assert answer.headers["content-type"] == "text/javascript; charset=utf-8"


async def test_head_has_the_headers_of_get(platform: RunningPlatform, client: httpx2.AsyncClient) -> None:
    async with platform.listening() as url, httpx2.AsyncClient(base_url=url) as wire:
        got, head = await wire.get("/console/icon.svg"), await wire.head("/console/icon.svg")
    assert (head.status_code, head.content) == (200, b"")
    for name in ("content-length", "content-type", "content-security-policy", "etag", "cache-control"):
        assert head.headers[name] == got.headers[name]


@pytest.mark.parametrize(
    "path",
    [
        "/console/assets/index-old.js",
        "/console/missing.css",
        "/console/index-4fJ0.js.gz",
        "/console/assets/index-4fJ0.js.gz",
        "/console/%2e%2e/secret.txt",
        "/console/..%2fsecret.txt",
        "/console/assets/..%2f..%2fsecret.txt",
        "/console/%2fetc%2fpasswd.txt",
        "/console/..%5csecret.txt",
        "/console/assets",
        "/console/assets/",
    ],
)
async def test_no_other_file_is_served(client: httpx2.AsyncClient, path: str) -> None:
    answer = await client.get(path)
    assert "a secret" not in answer.text
    assert answer.status_code in {200, 404}
    assert answer.status_code == 404 or answer.content == PAGE


async def test_a_missing_asset_is_not_the_application(client: httpx2.AsyncClient) -> None:
    assert (await client.get("/console/assets/index-old.js")).status_code == 404


async def test_other_methods_are_refused(client: httpx2.AsyncClient) -> None:
    assert (await client.post("/console")).status_code == 405
    assert (await client.delete("/console/keys")).status_code == 405


async def test_an_installation_without_the_console_works_and_shows_an_explanation(
    platform: RunningPlatform, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(routes, "_console_files", ConsoleFiles(tmp_path))
    for path in ("/console", "/console/keys"):
        answer = await platform.anonymous.get(path)
        assert answer.status_code == 200
        assert "The console is not installed" in answer.text
        assert answer.headers["cache-control"] == "no-store"
        assert answer.headers["content-security-policy"] == routes.CONTENT_SECURITY_POLICY
    assert (await platform.anonymous.get("/api/health/live")).status_code == 200


async def test_the_front_page_leads_browsers_to_the_console(client: httpx2.AsyncClient) -> None:
    answer = await client.get("/", headers={"Accept": "text/html,application/xhtml+xml,*/*;q=0.8"})
    assert (answer.status_code, answer.headers["location"]) == (303, "/console")
    assert answer.headers["vary"] == "Accept"
    links = await client.get("/", headers={"Accept": "application/json"})
    assert (links.status_code, links.json()["console"]) == (200, "/console")
