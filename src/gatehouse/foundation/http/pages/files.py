"""The route of the pages' static files."""

from typing import Final

from fastapi import APIRouter, Response

from gatehouse.foundation.errors import NotFound
from gatehouse.foundation.http.pages.rendering import Pages

_HEADERS: Final = {"Cache-Control": "public, max-age=31536000, immutable", "X-Content-Type-Options": "nosniff"}


def route(pages: Pages) -> APIRouter:
    router = APIRouter(include_in_schema=False)

    @router.get(pages.static_path + "/{name}")
    async def static(name: str) -> Response:
        try:
            content, media_type = pages.static(name)
        except KeyError:
            raise NotFound from None
        return Response(content, headers=_HEADERS, media_type=media_type)

    return router
