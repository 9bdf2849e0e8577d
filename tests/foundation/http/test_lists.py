from base64 import urlsafe_b64decode, urlsafe_b64encode
from typing import Annotated

import httpx2 as httpx
import pytest
from fastapi import Depends, FastAPI
from hypothesis import given
from hypothesis import strategies as st
from sqlalchemy import Column, Integer, MetaData, Table, create_engine, insert, select

from gatehouse.foundation.http.handlers import install
from gatehouse.foundation.http.lists import (
    BadCursor,
    CursorFiltersChanged,
    CursorSigner,
    CursorWindow,
    OffsetWindow,
    PageWindow,
    Window,
    by_variant,
    count_query,
    cursor_window,
    offset_window,
    page_window,
)

SIGNER = CursorSigner(b"k" * 32)
rows = Table("rows", MetaData(), Column("sequence", Integer, primary_key=True))


@pytest.fixture(scope="module")
async def client():
    app = FastAPI()
    install(app)

    @app.get("/pages")
    async def pages(window: Annotated[PageWindow, Depends(page_window())]):
        return window.envelope("items", [], 3)

    @app.get("/offsets")
    async def offsets(window: Annotated[OffsetWindow, Depends(offset_window(default=100, maximum=200))]):
        return window.envelope("records", [], 3)

    @app.get("/cursors")
    async def cursors(window: Annotated[CursorWindow, Depends(cursor_window())], action: str | None = None):
        return window.open(SIGNER, {"action": action}, context="events:t1").filters

    varied = by_variant(a=page_window(size_name="per_page"), b=page_window(default=20))

    @app.get("/varied")
    async def either(window: Annotated[Window, Depends(varied)]):
        return window.envelope("items", [], 0)

    async with httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://x") as client:
        yield client


@pytest.mark.parametrize(
    ("url", "envelope"),
    [
        ("/pages", {"items": [], "total": 3, "page": 1, "page_size": 50}),
        ("/pages?page=2&page_size=200", {"items": [], "total": 3, "page": 2, "page_size": 200}),
        ("/offsets", {"records": [], "total": 3, "limit": 100, "offset": 0}),
        ("/offsets?limit=1&offset=7", {"records": [], "total": 3, "limit": 1, "offset": 7}),
        ("/varied", {"items": [], "total": 0, "page": 1, "per_page": 50}),
        ("/varied?per_page=7", {"items": [], "total": 0, "page": 1, "per_page": 7}),
        ("/varied?page=3&page_size=7", {"items": [], "total": 0, "page": 3, "page_size": 7}),
    ],
)
async def test_an_envelope_repeats_its_window(client, url, envelope):
    assert (await client.get(url)).json() == envelope


@pytest.mark.parametrize(
    ("url", "name"),
    [
        ("/pages?page=0", "page"),
        ("/pages?page=-1", "page"),
        ("/pages?page=x", "page"),
        ("/pages?page=1e3", "page"),
        ("/pages?page=99999999999999999999999", "page"),
        ("/pages?page=", "page"),
        ("/pages?page_size=201", "page_size"),
        ("/pages?page_size=0", "page_size"),
        ("/offsets?limit=201", "limit"),
        ("/offsets?limit=0", "limit"),
        ("/offsets?offset=-1", "offset"),
        ("/offsets?offset=9999999999999999999", "offset"),
        ("/cursors?limit=501", "limit"),
        ("/cursors?limit=0", "limit"),
        ("/varied?per_page=0", "per_page"),
    ],
)
async def test_a_value_out_of_bounds_is_422_naming_the_parameter(client, url, name):
    answer = await client.get(url)
    assert answer.status_code == 422
    assert [fault["loc"] for fault in answer.json()["detail"]] == [["query", name]]


async def test_a_foreign_cursor_is_400_naming_cursor(client):
    answer = await client.get("/cursors", params={"cursor": "AAAA"})
    assert answer.status_code == 400
    assert answer.json()["detail"].startswith("cursor:")


GOOD = SIGNER.issue(41, {"action": "group.created"}, context="events:t1")


def flipped(position: int) -> str:
    raw = bytearray(urlsafe_b64decode(GOOD + "=" * (-len(GOOD) % 4)))
    raw[position] ^= 1
    return urlsafe_b64encode(bytes(raw)).decode().rstrip("=")


@pytest.mark.parametrize(
    "cursor",
    [
        "",
        "x",
        "=",
        "A" * 10_000,
        "é",
        GOOD[:-1],
        GOOD + "A",
        GOOD[:20],
        flipped(0),
        flipped(31),
        flipped(32),
        flipped(-1),
        CursorSigner(b"j" * 32).issue(41, {}, context="events:t1"),
        SIGNER.issue(41, {}, context="events:t2"),
        SIGNER.issue(41, {}, context="events:t"),
    ],
)
def test_only_cursors_of_the_same_signer_and_context_are_accepted(cursor):
    with pytest.raises(BadCursor):
        SIGNER.read(cursor, context="events:t1")


@given(st.text(max_size=200))
def test_every_invalid_cursor_is_refused(cursor):
    with pytest.raises(BadCursor):
        SIGNER.read(cursor, context="events:t1")


def test_a_cursor_contains_its_filters():
    opened = CursorWindow(50, GOOD).open(SIGNER, {"action": None, "actor_id": None}, context="events:t1")
    assert (opened.position, opened.filters) == (41, {"action": "group.created"})


def test_other_filters_than_those_of_the_cursor_are_refused():
    with pytest.raises(CursorFiltersChanged):
        CursorWindow(50, GOOD).open(SIGNER, {"action": "other"}, context="events:t1")
    with pytest.raises(CursorFiltersChanged):
        CursorWindow(50, GOOD).open(SIGNER, {"actor_id": "1"}, context="events:t1")
    assert CursorWindow(50, GOOD).open(SIGNER, {"action": "group.created"}, context="events:t1").position == 41


@pytest.fixture
def connection():
    engine = create_engine("sqlite://")
    with engine.begin() as connection:
        rows.metadata.create_all(connection)
        connection.execute(insert(rows), [{"sequence": number} for number in range(1, 8)])
        yield connection
    engine.dispose()


@pytest.mark.parametrize("limit", [1, 2, 3, 7, 8])
def test_paging_by_cursor_returns_every_row_once_including_rows_added_meanwhile(connection, limit):
    seen, cursor = [], None
    while True:
        opened = CursorWindow(limit, cursor).open(SIGNER, {}, context="x")
        result = connection.execute(opened.apply(select(rows.c.sequence), rows.c.sequence)).scalars().all()
        envelope = opened.envelope("events", result, position=lambda row: row, shown=lambda row: row)
        seen += envelope["events"]
        cursor = envelope["next_cursor"]
        assert envelope["has_more"] is (cursor is not None)
        if cursor is None:
            break
        if 8 not in seen and len(seen) < 3:
            connection.execute(insert(rows).prefix_with("OR IGNORE"), {"sequence": 8})
    assert seen == sorted(set(seen))
    assert seen[:7] == [1, 2, 3, 4, 5, 6, 7]


def test_a_page_and_its_offset_select_the_same_rows(connection):
    statement = select(rows.c.sequence).order_by(rows.c.sequence)
    assert connection.execute(PageWindow(3, 3).apply(statement)).scalars().all() == [7]
    assert connection.execute(OffsetWindow(3, 6).apply(statement)).scalars().all() == [7]
    assert connection.execute(count_query(PageWindow(1, 2).apply(statement))).scalar_one() == 7


def test_a_short_key_is_refused():
    with pytest.raises(ValueError, match="32 bytes"):
        CursorSigner(b"short")
