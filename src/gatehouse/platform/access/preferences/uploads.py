"""Reads the form of an uploaded picture. The form is parsed here, and not by the framework, so that its size is checked
first and nothing is spooled to disk."""

from typing import Any, Final

from starlette.datastructures import UploadFile
from starlette.formparsers import MultiPartException, MultiPartParser
from starlette.requests import Request

from gatehouse.foundation.errors import BadRequest, FieldFault, PayloadTooLarge, Unprocessable

#: Maximum size of an uploaded picture.
MAX_PICTURE_BYTES: Final = 1024 * 1024
#: Maximum size of the form in addition to its file.
_MAX_FORM_OVERHEAD_BYTES: Final = 16 * 1024

#: The form's description in the OpenAPI document.
UPLOAD_OPENAPI: Final[dict[str, Any]] = {
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


class PictureTooLarge(PayloadTooLarge):
    message = f"file: a picture may have at most {MAX_PICTURE_BYTES} bytes."


class BadAvatarForm(BadRequest):
    message = "The form cannot be read: send multipart/form-data with the part `file`."


class NoFile(Unprocessable):
    def __init__(self) -> None:
        super().__init__(faults=[FieldFault("file", "Field required: a picture, as multipart/form-data")])


async def read_picture(request: Request) -> bytes:
    """Return the content of the part `file`. Raises `PictureTooLarge`, `BadAvatarForm`, `NoFile`."""
    if len(await request.body()) > MAX_PICTURE_BYTES + _MAX_FORM_OVERHEAD_BYTES:
        raise PictureTooLarge
    if request.headers.get("content-type", "").partition(";")[0].strip().lower() != "multipart/form-data":
        raise BadAvatarForm
    parser = MultiPartParser(
        request.headers, request.stream(), max_files=1, max_fields=4, max_part_size=_MAX_FORM_OVERHEAD_BYTES
    )
    parser.spool_max_size = 2 * MAX_PICTURE_BYTES
    try:
        form = await parser.parse()
    except MultiPartException as error:
        raise BadAvatarForm(f"The form cannot be read: {error.message}") from None
    try:
        file = form.get("file")
        if not isinstance(file, UploadFile):
            raise NoFile
        content = await file.read()
    finally:
        await form.close()
    if len(content) > MAX_PICTURE_BYTES:
        raise PictureTooLarge
    return content
