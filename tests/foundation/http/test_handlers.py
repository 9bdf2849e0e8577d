import io
import logging
from typing import Annotated, Literal

import httpx2 as httpx
import psycopg
import pytest
import structlog
from fastapi import FastAPI, Query
from pydantic import BaseModel, field_validator
from sqlalchemy import exc
from starlette.responses import StreamingResponse
from starlette.types import Receive, Scope, Send

from gatehouse.foundation import errors, log
from gatehouse.foundation.http.envelopes import CODED, DETAIL, PORTAL, ErrorFormats
from gatehouse.foundation.http.handlers import _FaultMiddleware, install
from gatehouse.foundation.storage.away import DATABASE_UNAVAILABLE_ERRORS


class Login(BaseModel):
    email: str
    password: str
    kind: Literal["a", "b"] = "a"

    @field_validator("password")
    @classmethod
    def long_enough(cls, value: str) -> str:
        if len(value) < 8:
            raise ValueError("at least 8 characters")
        return value


class Gone(errors.NotFound):
    message = "Group not found"


def build(formats: ErrorFormats) -> FastAPI:
    app = FastAPI(redirect_slashes=False)
    install(app, formats, unavailable=DATABASE_UNAVAILABLE_ERRORS)

    for prefix in (
        "/api/detail",
        "/api/coded",
        "/api/strict",
        "/api/portal",
        "/v1/scan",
        "/oauth/token",
        "/api/scim/v2",
    ):

        @app.post(f"{prefix}/login")
        async def login(body: Login) -> dict[str, str]:
            return {}

        @app.get(f"{prefix}/gone")
        async def gone() -> None:
            raise Gone

        @app.patch(f"{prefix}/gone")
        async def change_gone() -> None:
            raise Gone

        @app.get(f"{prefix}/number")
        async def number(limit: Annotated[int, Query(ge=1, le=5)]) -> None: ...

        @app.get(f"{prefix}/fault")
        async def fault() -> None:
            raise RuntimeError("password=hunter2")

    @app.get("/late")
    async def late() -> StreamingResponse:
        async def chunks():
            yield b"first"
            raise RuntimeError("broken")

        return StreamingResponse(chunks())

    return app


@pytest.fixture(scope="module")
async def client():
    formats = ErrorFormats(
        {"/api/coded": CODED, "/api/strict": DETAIL.validating({"a": 422, "b": 400, "c": 422}), "/api/portal": PORTAL}
    )
    async with httpx.AsyncClient(transport=httpx.ASGITransport(build(formats)), base_url="http://x") as client:
        yield client


@pytest.mark.parametrize(
    ("prefix", "status", "body"),
    [
        (
            "/api/detail",
            422,
            {
                "detail": [
                    {"type": "missing", "loc": ["body", "email"], "msg": "Field required"},
                    {"type": "value_error", "loc": ["body", "password"], "msg": "at least 8 characters"},
                ]
            },
        ),
        (
            "/api/coded",
            422,
            {
                "error": "validation_error",
                "message": "A field is not valid.",
                "details": [
                    {"field": "email", "message": "Field required"},
                    {"field": "password", "message": "at least 8 characters"},
                ],
            },
        ),
        (
            "/api/portal",
            422,
            {"error": "validation_error", "detail": "email: Field required; password: at least 8 characters"},
        ),
        (
            "/v1/scan",
            400,
            {
                "error": {
                    "message": "email: Field required; password: at least 8 characters",
                    "type": "invalid_request_error",
                    "code": "validation_error",
                    "param": "email",
                }
            },
        ),
        (
            "/oauth/token",
            400,
            {
                "error": "invalid_request",
                "error_description": "email: Field required; password: at least 8 characters",
            },
        ),
    ],
)
async def test_a_bad_body_is_reported_in_the_form_of_its_path_without_its_values(client, prefix, status, body):
    answer = await client.post(f"{prefix}/login", json={"password": "hunter2"})
    assert (answer.status_code, answer.json()) == (status, body)
    assert "hunter2" not in answer.text


async def test_the_status_of_bad_fields_may_depend_on_the_variant(client):
    url = "/api/strict/login"
    assert (await client.post(url, json={})).status_code == 422
    assert (await client.post(url, json={}, headers={"X-API-Variant": "b"})).status_code == 400


async def test_a_bad_parameter_names_its_place(client):
    answer = await client.get("/api/detail/number", params={"limit": "9"})
    assert answer.status_code == 422
    assert answer.json()["detail"][0]["loc"] == ["query", "limit"]
    assert "9" not in answer.text


@pytest.mark.parametrize("body", [b"{", b"\xff\xfe", b'{"email": NaN', b"[" * 5000])
async def test_a_body_that_is_no_json_is_400(client, body):
    answer = await client.post("/api/detail/login", content=body, headers={"Content-Type": "application/json"})
    assert answer.status_code == 400
    assert set(answer.json()) == {"detail"}


@pytest.mark.parametrize(
    ("method", "path", "status", "body"),
    [
        ("GET", "/api/detail/gone", 404, {"detail": "Group not found"}),
        ("GET", "/api/coded/gone", 404, {"error": "not_found", "message": "Group not found"}),
        ("GET", "/api/portal/gone", 404, {"error": "not_found", "detail": "Group not found"}),
        ("GET", "/api/detail/nowhere", 404, {"detail": "Not found"}),
        ("GET", "/api/coded/nowhere", 404, {"error": "not_found", "message": "Not found"}),
        (
            "GET",
            "/v1/scan/nowhere",
            404,
            {"error": {"message": "Not found", "type": "invalid_request_error", "code": "not_found"}},
        ),
        (
            "DELETE",
            "/api/coded/gone",
            405,
            {
                "error": "method_not_allowed",
                "message": "This path does not accept this method. The header Allow lists the methods it accepts.",
            },
        ),
    ],
)
async def test_refusals_and_unknown_paths_are_reported_in_the_form_of_the_path(client, method, path, status, body):
    answer = await client.request(method, path)
    assert (answer.status_code, answer.json()) == (status, body)


async def test_a_405_lists_every_method_that_the_path_accepts(client):
    assert (await client.delete("/api/coded/gone")).headers["Allow"] == "GET, PATCH"


async def test_scim_errors_have_their_media_type(client):
    answer = await client.get("/api/scim/v2/gone")
    assert answer.headers["Content-Type"] == "application/scim+json"
    assert answer.json()["status"] == "404"


@pytest.mark.parametrize(
    ("prefix", "body"),
    [
        ("/api/detail", {"detail": "Unexpected error."}),
        ("/api/coded", {"error": "internal_error", "message": "Unexpected error."}),
        (
            "/v1/scan",
            {"error": {"message": "Unexpected error.", "type": "internal_error", "code": "internal_error"}},
        ),
    ],
)
async def test_an_unhandled_error_discloses_nothing(client, prefix, body):
    answer = await client.get(f"{prefix}/fault")
    assert (answer.status_code, answer.json()) == (500, body)


async def test_an_error_after_the_first_byte_closes_the_connection(client):
    with pytest.raises(RuntimeError, match="broken"):
        await client.get("/late")


async def test_long_field_names_are_truncated(client):
    class Strict(BaseModel, extra="forbid"): ...

    app = FastAPI()
    install(app, unavailable=DATABASE_UNAVAILABLE_ERRORS)

    @app.post("/x")
    async def x(body: Strict) -> None: ...

    async with httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://x") as local:
        answer = await local.post("/x", json={"k" * 100_000: 1})
    assert answer.status_code == 422
    assert len(answer.content) < 1000


@pytest.mark.parametrize(
    "error",
    [
        exc.OperationalError("SELECT", {}, psycopg.OperationalError("server closed the connection")),
        exc.InterfaceError("SELECT", {}, psycopg.InterfaceError("the connection is closed")),
        exc.TimeoutError("QueuePool limit of size 10 reached"),
        psycopg.OperationalError("connection refused"),
    ],
)
@pytest.mark.parametrize("inside", [True, False])
async def test_an_unavailable_database_is_503_with_a_retry_time(error: Exception, inside: bool) -> None:
    app = FastAPI()
    responses = install(app, ErrorFormats({"/api/coded": CODED}), unavailable=DATABASE_UNAVAILABLE_ERRORS)

    @app.get("/api/coded")
    async def route() -> None:
        raise error

    async def outside(scope: Scope, receive: Receive, send: Send) -> None:
        raise error

    served = app if inside else _FaultMiddleware(outside, responses=responses)
    async with httpx.AsyncClient(transport=httpx.ASGITransport(served), base_url="http://t") as client:
        answer = await client.get("/api/coded")
    assert answer.status_code == 503
    assert answer.headers["Retry-After"] == "5"
    assert answer.json()["error"] == "database_unavailable"


async def test_the_log_of_a_fault_has_no_values_and_no_locals(capsys: pytest.CaptureFixture[str]) -> None:
    stored = "$argon2id$v=19$m=65536,t=3,p=4$c29tZXNhbHQ$aGFzaA"
    app = FastAPI()
    install(app, ErrorFormats(), unavailable=DATABASE_UNAVAILABLE_ERRORS)

    @app.get("/api/detail")
    async def route() -> None:
        password_hash = stored
        detail = f'null value in column "email"\nDETAIL:  Failing row contains (7, a secret name, {password_hash}).'
        raise exc.IntegrityError(
            "INSERT INTO users", {"h": password_hash}, psycopg.IntegrityError(detail), hide_parameters=True
        )

    out, before = io.StringIO(), (logging.root.handlers[:], logging.root.level)
    log.configure("info", out)
    try:
        async with httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://t") as client:
            answer = await client.get("/api/detail")
    finally:
        structlog.reset_defaults()
        logging.root.handlers, level = before
        logging.root.setLevel(level)
    assert answer.status_code == 500
    output = out.getvalue() + capsys.readouterr().err
    assert "null value in column" in output
    assert "argon2id" not in output
    assert "a secret name" not in output
