"""Lists of clients by variant: a plain array in A and C, a page in B (docs/variants.md)."""

from typing import Annotated

from fastapi import Depends
from sqlalchemy import Select
from sqlalchemy.ext.asyncio import AsyncSession

from gatehouse.foundation.http.lists import PageWindow, Window, by_variant, offset_window, page_window
from gatehouse.platform.access.oauth_clients.table import OAuthClientRow, count_clients, fetch_window

ListWindow = Annotated[
    Window,
    Depends(by_variant(a=offset_window(default=50, maximum=500), b=page_window(default=20, maximum=200))),
]


async def list_response(session: AsyncSession, query: Select[OAuthClientRow], window: Window) -> object:
    rows = await fetch_window(session, query, window)
    if isinstance(window, PageWindow):
        return window.envelope("items", rows, await count_clients(session, query))
    return rows
