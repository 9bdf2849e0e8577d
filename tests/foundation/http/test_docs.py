import re

import httpx2 as httpx
import pytest
from fastapi import FastAPI
from pydantic import BaseModel, Field

from gatehouse.foundation.http import docs
from gatehouse.foundation.http.handlers import install
from gatehouse.foundation.http.openapi30 import downgraded


class Pet(BaseModel):
    name: str | None = None
    age: int = Field(1, gt=0)
    friend: "Pet | None" = None
    kind: str | int | None = None


def build() -> FastAPI:
    app = FastAPI(title='Gate "<house>"', docs_url=None, redoc_url=None, separate_input_output_schemas=False)
    install(app)
    docs.install(app)

    @app.post("/pets")
    async def add(pet: Pet) -> Pet:
        return pet

    return app


@pytest.fixture(scope="module")
async def client():
    async with httpx.AsyncClient(transport=httpx.ASGITransport(build()), base_url="http://x") as client:
        yield client


async def test_the_page_and_everything_it_asks_for_come_from_here(client):
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


async def test_the_page_gets_a_document_that_its_reader_understands(client):
    document = (await client.get("/docs/openapi.json")).json()
    pet = document["components"]["schemas"]["Pet"]["properties"]
    assert document["openapi"] == "3.0.3"
    assert pet["name"] == {"type": "string", "title": "Name", "nullable": True}
    assert (pet["age"]["minimum"], pet["age"]["exclusiveMinimum"]) == (0, True)
    assert pet["friend"] == {"allOf": [{"$ref": "#/components/schemas/Pet"}], "nullable": True}
    assert pet["kind"]["nullable"] is True
    assert '"null"' not in (await client.get("/docs/openapi.json")).text


def test_translating_leaves_the_document_alone():
    document = {"openapi": "3.1.0", "x": {"anyOf": [{"type": "string"}, {"type": "null"}]}}
    downgraded(document)
    assert document == {"openapi": "3.1.0", "x": {"anyOf": [{"type": "string"}, {"type": "null"}]}}
