"""The form that a picture comes in. Read by hand: measured before it is parsed, and never spooled to a disk."""

from typing import Any, Final

from starlette.datastructures import UploadFile
from starlette.formparsers import MultiPartException, MultiPartParser
from starlette.requests import Request

from gatehouse.platform.access.preferences.errors import MOST_BYTES, BadForm, NoFile, PictureTooLarge

#: What the form itself may take, beside its file.
_FORM_BYTES: Final = 16 * 1024

#: For the API's document.
OPENAPI: Final[dict[str, Any]] = {
    "requestBody": {
        "required": True,
        "content": {
            "multipart/form-data": {
                "schema": {
                    "type": "object",
                    "required": ["file"],
                    "properties": {
                        "file": {
                            "type": "string",
                            "format": "binary",
                            "description": "PNG or JPEG, 1 MB at most.",
                            "example": "(the bytes of a picture)",
                        }
                    },
                }
            }
        },
    }
}


async def picture(request: Request) -> bytes:
    """The part `file`. Raises `PictureTooLarge`, `BadForm`, `NoFile`."""
    if len(await request.body()) > MOST_BYTES + _FORM_BYTES:
        raise PictureTooLarge
    if request.headers.get("content-type", "").partition(";")[0].strip().lower() != "multipart/form-data":
        raise BadForm
    parser = MultiPartParser(request.headers, request.stream(), max_files=1, max_fields=4, max_part_size=_FORM_BYTES)
    parser.spool_max_size = 2 * MOST_BYTES
    try:
        form = await parser.parse()
    except MultiPartException as error:
        raise BadForm(f"The form cannot be read: {error.message}") from None
    try:
        file = form.get("file")
        if not isinstance(file, UploadFile):
            raise NoFile
        content = await file.read()
    finally:
        await form.close()
    if len(content) > MOST_BYTES:
        raise PictureTooLarge
    return content
