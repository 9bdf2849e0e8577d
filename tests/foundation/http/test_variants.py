import httpx2 as httpx
import pytest
from fastapi import FastAPI

from gatehouse.foundation.http import variants
from gatehouse.foundation.http.handlers import install
from gatehouse.foundation.http.variants import RequestVariant, UnknownVariant, Variant, VariantMiddleware

CLIENTS = "/api/admin/oauth-clients"
CATALOG = "/api/admin/models/catalog"


@pytest.mark.parametrize(
    ("method", "path", "query", "header", "variant"),
    [
        ("GET", CLIENTS, "", None, "c"),
        ("GET", CLIENTS, "", "b", "b"),
        ("GET", CLIENTS, "limit=5", "b", "b"),
        ("GET", CLIENTS, "limit=5", None, "a"),
        ("GET", CLIENTS + "/", "offset=0", None, "a"),
        ("GET", CLIENTS, "page=2", None, "b"),
        ("GET", CLIENTS, "page_size=2", None, "b"),
        ("GET", CLIENTS, "enabled=true", None, "b"),
        ("GET", CLIENTS, "limit=5&page=1", None, "c"),
        ("PUT", CLIENTS + "/1", "", None, "a"),
        ("PATCH", CLIENTS + "/1", "", None, "b"),
        ("PATCH", CLIENTS + "/1", "", "a", "a"),
        ("GET", CATALOG, "page=2", None, "c"),
        ("GET", CATALOG, "page=2&per_page=10", None, "a"),
        ("GET", CATALOG + "/", "page=2&page_size=10", None, "b"),
        ("GET", "/api/admin/models", "limit=5&offset=5", None, "c"),
        ("GET", "/api/admin/webhooks", "", None, "a"),
        ("GET", "/api/admin/webhooks/1", "", "c", "c"),
        ("GET", "/api/v1/admin/webhooks/1", "", None, "b"),
        ("GET", "/api/v1/admin/webhooksome", "", None, "c"),
        ("GET", "/api/anything", "per_page=1", None, "a"),
        ("GET", "/api/anything", "limit=1", None, "c"),
        ("GET", "/" * 5000, "", None, "c"),
        ("GET", CLIENTS, "", " B ", "b"),
    ],
)
def test_the_variant_is_that_of_the_header_then_the_request_then_the_setting(method, path, query, header, variant):
    names = {pair.partition("=")[0] for pair in query.split("&")}
    assert variants.resolve(method, path, names, header, Variant.C) == variant


@pytest.mark.parametrize("header", ["", "d", "ab", "a,b", "1", "ä", "a" * 10_000])
def test_another_header_is_refused(header):
    with pytest.raises(UnknownVariant):
        variants.resolve("GET", "/x", (), header, Variant.A)


@pytest.fixture(scope="module")
async def client():
    app = FastAPI()
    responses = install(app)
    app.add_middleware(VariantMiddleware, default=Variant.C, refuse=responses.to, except_for=("/v1/chat/completions",))

    @app.get("/v1/chat/completions")
    @app.get("/api/which")
    async def which(variant: RequestVariant) -> str:
        return variant

    async with httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://x") as client:
        yield client


async def test_every_response_names_the_variant_including_errors(client):
    answer = await client.get("/api/which")
    assert (answer.json(), answer.headers["X-API-Variant"]) == ("c", "c")
    assert (await client.get("/api/nowhere?page_size=1")).headers["X-API-Variant"] == "b"


async def test_a_bad_header_is_400_in_the_paths_form(client):
    answer = await client.get("/api/which", headers={"X-API-Variant": "z"})
    assert (answer.status_code, set(answer.json())) == (400, {"detail"})
    assert answer.headers["X-API-Variant"] == "c"


async def test_the_variant_of_gateway_paths_is_not_determined(client):
    answer = await client.get("/v1/chat/completions")
    assert "X-API-Variant" not in answer.headers
