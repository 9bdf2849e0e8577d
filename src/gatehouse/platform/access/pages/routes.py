"""The files that pages name."""

from typing import Final

from fastapi import APIRouter, Response

from gatehouse.foundation.errors import NotFound
from gatehouse.platform.access.pages import rendering

router = APIRouter(include_in_schema=False)

_KEPT: Final = {"Cache-Control": "public, max-age=31536000, immutable", "X-Content-Type-Options": "nosniff"}


@router.get(rendering.STATIC_PATH + "/{name}")
async def static(name: str) -> Response:
    try:
        content, media_type = rendering.static(name)
    except KeyError:
        raise NotFound from None
    return Response(content, headers=_KEPT, media_type=media_type)
