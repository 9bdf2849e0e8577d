"""Errors of files."""

from gatehouse.engine.conversation.errors import InvalidField
from gatehouse.foundation.errors import BadRequest, NotFound


class FileNotFound(NotFound):
    code = "file_not_found"
    message = "No such file. It may have expired."


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
