import re
from typing import Annotated

import httpx2 as httpx
import pytest
from fastapi import FastAPI
from pydantic import BaseModel, Field

from gatehouse.foundation.http.documentation import page as docs_page
from gatehouse.foundation.http.documentation.openapi30 import downgraded
from gatehouse.foundation.http.handlers import install


class Pet(BaseModel):
    name: str | None = None
    age: int = Field(1, gt=0)
    friend: "Pet | None" = None
    kind: str | int | None = None
    owner: None = None
    colour: Annotated[str | None, Field(pattern="^[a-z]+$", examples=["black", "white"])] = None


def build() -> FastAPI:
    app = FastAPI(title='Gate "<house>"', docs_url=None, redoc_url=None, separate_input_output_schemas=False)
    install(app)
    docs_page.install(app)

    @app.post("/pets")
    async def add(pet: Pet) -> Pet:
        return pet

    return app


@pytest.fixture(scope="module")
async def client():
    async with httpx.AsyncClient(transport=httpx.ASGITransport(build()), base_url="http://x") as client:
        yield client


async def test_the_page_and_all_its_files_are_served_locally(client):
    page = await client.get("/docs")
    assert page.status_code == 200
    assert page.headers["Content-Type"].startswith("text/html")
    addresses = re.findall(r'(?:src|href|data-document)="([^"]+)"', page.text)
    assert len(addresses) == 6
    for address in addresses:
        assert address.startswith("/docs/")
        asset = await client.get(address)
        assert asset.status_code == 200
        assert asset.content
        assert asset.headers["X-Content-Type-Options"] == "nosniff"


async def test_the_page_runs_under_a_policy_without_inline_scripts_or_foreign_sources(client):
    page = await client.get("/docs")
    policy = page.headers["Content-Security-Policy"]
    assert "script-src 'self';" in policy
    assert "unsafe" not in policy
    assert "http" not in policy
    assert not re.search(r"<script(?![^>]*src=)|\son\w+=|<style|javascript:|style=", page.text)


async def test_a_title_cannot_write_markup(client):
    assert "Gate &quot;&lt;house>&quot;" in (await client.get("/docs")).text


@pytest.mark.parametrize("name", ["index.html", "..%2f..%2f__init__.py", "swagger-ui-bundle.js.map", "nothing", "%00"])
async def test_only_listed_files_are_served(client, name):
    assert (await client.get(f"/docs/{name}")).status_code == 404


async def test_the_document_stays_openapi_3_1(client):
    assert (await client.get("/openapi.json")).json()["openapi"].startswith("3.1")


async def test_the_page_reads_the_document_as_openapi_3_0(client):
    document = (await client.get("/docs/openapi.json")).json()
    pet = document["components"]["schemas"]["Pet"]["properties"]
    assert document["openapi"] == "3.0.3"
    assert pet["name"] == {"type": "string", "title": "Name", "nullable": True}
    assert (pet["age"]["minimum"], pet["age"]["exclusiveMinimum"]) == (0, True)
    assert pet["friend"] == {"allOf": [{"$ref": "#/components/schemas/Pet"}], "nullable": True}
    assert pet["kind"]["nullable"] is True
    assert pet["owner"] == {"title": "Owner", "enum": [None], "nullable": True}
    assert '"null"' not in (await client.get("/docs/openapi.json")).text


async def test_the_page_shows_the_examples_that_fields_have(client):
    """A schema of OpenAPI 3.0 has one example. Without it the page shows generated text that matches the pattern."""
    document = (await client.get("/docs/openapi.json")).json()
    colour = document["components"]["schemas"]["Pet"]["properties"]["colour"]
    assert colour["example"] == "black"
    assert "examples" not in colour


def test_named_examples_of_a_body_stay_as_they_are():
    body = {"schema": {"type": "string"}, "examples": {"short": {"value": "a"}}}
    assert downgraded({"content": {"application/json": body}})["content"] == {"application/json": body}


def test_the_summary_of_the_api_becomes_its_description():
    document = downgraded({"openapi": "3.1.0", "info": {"title": "T", "version": "1", "summary": "What it is."}})
    assert document["info"] == {"title": "T", "version": "1", "description": "What it is."}


def test_the_conversion_does_not_change_the_document():
    document = {"openapi": "3.1.0", "x": {"anyOf": [{"type": "string"}, {"type": "null"}]}}
    downgraded(document)
    assert document == {"openapi": "3.1.0", "x": {"anyOf": [{"type": "string"}, {"type": "null"}]}}
