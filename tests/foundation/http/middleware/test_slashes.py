import httpx2 as httpx
import pytest
from fastapi import APIRouter, FastAPI
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import PlainTextResponse

from gatehouse.foundation.http.middleware import slashes


def build() -> FastAPI:
    app = FastAPI()
    slashes.install(app)
    router = APIRouter(prefix="/api/clients")

    @router.post("/")
    async def create(request: Request) -> bytes:
        return await request.body()

    @router.get("/{client_id}")
    async def read(client_id: str) -> str:
        return client_id

    @router.get("/{client_id}/keys/")
    async def keys(client_id: str) -> str:
        return "keys of " + client_id

    app.include_router(router)

    @app.get("/api/groups")
    async def groups() -> str:
        return "groups"

    @app.get("/api/rules/{model_id:path}")
    async def rule(model_id: str) -> str:
        return model_id

    @app.get("/both")
    async def bare() -> str:
        return "bare"

    @app.get("/both/")
    async def slashed() -> str:
        return "slashed"

    @app.get("/")
    async def root() -> str:
        return "root"

    inner = Starlette()

    async def echo(request: Request) -> PlainTextResponse:
        return PlainTextResponse('"' + request.url.path + '"')

    inner.add_route("/{rest:path}", echo)
    app.mount("/mounted", inner)
    return app


@pytest.fixture(scope="module")
async def client():
    async with httpx.AsyncClient(transport=httpx.ASGITransport(build()), base_url="http://x") as client:
        yield client


@pytest.mark.parametrize(
    ("path", "body"),
    [
        ("/api/groups", "groups"),
        ("/api/groups/", "groups"),
        ("/api/clients/7", "7"),
        ("/api/clients/7/", "7"),
        ("/api/clients/7/keys", "keys of 7"),
        ("/api/clients/7/keys/", "keys of 7"),
        ("/api/rules/openai/gpt-5", "openai/gpt-5"),
        ("/api/rules/openai/gpt-5/", "openai/gpt-5"),
        ("/api/rules/openai/gpt-5%2F", "openai/gpt-5/"),
        ("/both", "bare"),
        ("/both/", "slashed"),
        ("/", "root"),
        ("/mounted/x/", "/mounted/x/"),
        ("/mounted/x", "/mounted/x"),
    ],
)
async def test_both_forms_of_a_path_answer_without_a_redirect(client, path, body):
    answer = await client.get(path)
    assert (answer.status_code, answer.json()) == (200, body)


@pytest.mark.parametrize("path", ["/api/clients", "/api/clients/"])
async def test_a_post_keeps_its_body(client, path):
    answer = await client.post(path, content=b"hello")
    assert (answer.status_code, answer.json()) == (200, "hello")


@pytest.mark.parametrize(
    "path", ["/api/groups//", "/nowhere/", "/nowhere", "//api/groups", "/api/nowhere/" + "/" * 100]
)
async def test_an_unknown_path_is_not_found_with_or_without_a_slash(client, path):
    answer = await client.get(path)
    assert answer.status_code == 404
