"""Reads the form of an uploaded file. The form is parsed here, and not by the framework, so that nothing is spooled to
disk."""

from typing import Any, Final, NamedTuple

from starlette.datastructures import FormData, UploadFile
from starlette.formparsers import MultiPartException, MultiPartParser
from starlette.requests import Request

from gatehouse.engine.conversation.errors import InvalidField
from gatehouse.foundation.errors import BadRequest

_MAX_NAME_CHARACTERS: Final = 255
_MAX_FIELD_BYTES: Final = 1024
_MIN_LIFETIME_SECONDS: Final = 3600
_MAX_LIFETIME_SECONDS: Final = 2_592_000

#: The form's description in the OpenAPI document.
UPLOAD_OPENAPI: Final[dict[str, Any]] = {
    "requestBody": {
        "required": True,
        "content": {
            "multipart/form-data": {
                "schema": {
                    "type": "object",
                    "required": ["file", "purpose"],
                    "properties": {
                        "file": {
                            "type": "string",
                            "format": "binary",
                            "description": "JSON lines. MAX_REQUEST_BYTES limits the size.",
                            "example": "(JSON lines)",
                        },
                        "purpose": {"type": "string", "enum": ["batch"], "example": "batch"},
                        "expires_after[anchor]": {"type": "string", "enum": ["created_at"], "example": "created_at"},
                        "expires_after[seconds]": {
                            "type": "integer",
                            "minimum": _MIN_LIFETIME_SECONDS,
                            "maximum": _MAX_LIFETIME_SECONDS,
                            "description": "Default: FILE_RETENTION_DAYS, which is also the maximum.",
                            "example": 86400,
                        },
                    },
                }
            }
        },
    }
}


class MalformedUpload(BadRequest):
    code = "invalid_form"
    message = "The form cannot be read. Send multipart/form-data with the parts `file` and `purpose`."


class NoUploadedFile(InvalidField):
    def __init__(self) -> None:
        super().__init__("file", "Send the part `file` with a file name.")


class PurposeNotServed(InvalidField):
    def __init__(self) -> None:
        super().__init__("purpose", "Send the purpose `batch`. Files of other purposes are not stored.")


class BadLifetime(InvalidField):
    def __init__(self, name: str, message: str) -> None:
        super().__init__(f"expires_after.{name}", message)


class FileUpload(NamedTuple):
    """An uploaded file. `lifetime_seconds` is None if the client sent none."""

    filename: str
    content: bytes
    lifetime_seconds: int | None


async def read_upload(request: Request) -> FileUpload:
    """Return the file of the form. Raises `MalformedUpload`, `NoUploadedFile`, `PurposeNotServed`, `BadLifetime`."""
    if request.headers.get("content-type", "").partition(";")[0].strip().lower() != "multipart/form-data":
        raise MalformedUpload
    size = len(await request.body())
    parser = MultiPartParser(
        request.headers, request.stream(), max_files=1, max_fields=8, max_part_size=_MAX_FIELD_BYTES
    )
    parser.spool_max_size = size + 1
    try:
        form = await parser.parse()
    except MultiPartException as error:
        raise MalformedUpload(f"The form cannot be read: {error.message}") from None
    except (KeyError, UnicodeDecodeError):
        raise MalformedUpload from None
    try:
        if form.get("purpose") != "batch":
            raise PurposeNotServed
        file = form.get("file")
        if not isinstance(file, UploadFile):
            raise NoUploadedFile
        return FileUpload(_name(file.filename), await file.read(), _lifetime(form))
    finally:
        await form.close()


def _name(filename: str | None) -> str:
    """Return the name of the file without a folder and without characters that cannot be stored."""
    name = (filename or "").replace("\\", "/").rpartition("/")[2]
    printable = "".join(character for character in name if character.isprintable())
    return printable[:_MAX_NAME_CHARACTERS] or "file.jsonl"


def _lifetime(form: FormData) -> int | None:
    anchor, seconds = form.get("expires_after[anchor]"), form.get("expires_after[seconds]")
    if anchor is None and seconds is None:
        return None
    if anchor != "created_at":
        raise BadLifetime("anchor", "must be created_at")
    digits = seconds if isinstance(seconds, str) and seconds.isascii() and seconds.isdecimal() else ""
    number = int(digits) if 0 < len(digits) <= len(str(_MAX_LIFETIME_SECONDS)) else 0
    if not _MIN_LIFETIME_SECONDS <= number <= _MAX_LIFETIME_SECONDS:
        raise BadLifetime("seconds", f"must be a number from {_MIN_LIFETIME_SECONDS} to {_MAX_LIFETIME_SECONDS}")
    return number
