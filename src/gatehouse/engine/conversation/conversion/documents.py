"""Converts documents in OpenAI's form (`file_data`, `file_url`) to the internal form, and back to a `data:` URL."""

from collections.abc import Mapping
from typing import Any, Final

from gatehouse.engine.conversation.conversion.lost import unread
from gatehouse.engine.conversation.errors import InvalidField
from gatehouse.engine.conversation.form import Document

#: the name of a document without a name, for APIs that require one
DEFAULT_NAME: Final = "document.pdf"
_FIELDS: Final = frozenset({"type", "filename", "file_data", "file_url"})


def document_in(fields: Mapping[str, Any], path: str, holder: str, lost: dict[str, None]) -> Document:
    """Return the document in OpenAI's fields. Adds the names of fields that are left out to `lost`, below `holder`.
    Raises `InvalidField`."""
    if "file_id" in fields and fields["file_id"] is not None:
        raise InvalidField(
            f"{path}.file_id", f"`{path}.file_id` refers to a file of another provider: send `file_data`."
        )
    lost |= unread(fields, _FIELDS, f"{holder}.")
    name, url, data = fields.get("filename"), fields.get("file_url"), fields.get("file_data")
    name = name if isinstance(name, str) else None
    if isinstance(url, str):
        return Document(url=url, name=name)
    head, comma, content = data.partition(",") if isinstance(data, str) else ("", "", "")
    if not (comma and head.startswith("data:") and head.endswith(";base64")):
        raise InvalidField(
            f"{path}.file_data",
            f"`{path}.file_data` must be a `data:` URL in base64, such as `data:application/pdf;base64,...`.",
        )
    return Document(data=content, media_type=head[5:-7], name=name)


def data_url(document: Document, path: str) -> str:
    """Return the document as a `data:` URL. Raises `InvalidField` for a document by URL."""
    if document.data is None:
        raise InvalidField(path, f"`{path}`: this provider takes documents only as data, not by URL.")
    return f"data:{document.media_type};base64,{document.data}"
