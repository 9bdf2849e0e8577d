"""Converts the URLs of images, including `data:` URLs, to and from the internal form."""

from typing import Any

from gatehouse.engine.conversation.form import Image


def from_url(url: str, detail: Any = None) -> Image:
    detail_text = detail if isinstance(detail, str) else None
    head, comma, data = url.partition(",")
    if head.startswith("data:") and comma and head.endswith(";base64"):
        return Image(data=data, media_type=head[5:-7], detail=detail_text)
    return Image(url=url, detail=detail_text)


def to_url(image: Image) -> str:
    return image.url if image.url is not None else f"data:{image.media_type};base64,{image.data}"
