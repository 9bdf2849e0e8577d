"""A recording as a provider's answer. Its bytes are passed on in pieces, so that the whole recording is never in
memory."""

from collections.abc import Mapping
from typing import Final

from gatehouse.detection.documents.encodings import begins_like_text
from gatehouse.engine.conversation.usage import Usage
from gatehouse.engine.providers.failure import ProviderFailed

_UNKNOWN_TYPE: Final = "application/octet-stream"
_TEXT_TYPES: Final = ("application/json", "application/problem+json", "text/")
#: Number of bytes that are collected before the first ones are sent.
_BEGINNING_BYTES: Final = 64
#: Maximum number of bytes of the beginning that are examined.
_READ_BYTES: Final = 2048


class Binary:
    """A `Stream` of bytes. It holds back the latest piece, so that the request is recorded before the last piece is
    sent."""

    __slots__ = ("_beginning", "_latest", "complete", "finished")

    #: no usage is reported, and the answer has no tokens
    usage: Usage | None = None
    output_estimate = 0
    lost_parts: tuple[str, ...] = ()

    def __init__(self) -> None:
        #: the first bytes, until there are enough of them to distinguish a recording from a text
        self._beginning: bytes | None = b""
        self._latest = b""
        self.complete = False
        self.finished = False

    def push(self, chunk: bytes) -> bytes:
        if self._beginning is not None:
            self._beginning += chunk
            if len(self._beginning) < _BEGINNING_BYTES:
                return b""
            chunk = self._checked_beginning()
        released, self._latest = self._latest, chunk
        return released

    def end(self) -> bytes:
        if self._beginning is not None:
            self._latest = self._checked_beginning()
        self.complete = self.finished = True
        released, self._latest = self._latest, b""
        return released

    def _checked_beginning(self) -> bytes:
        beginning, self._beginning = self._beginning or b"", None
        if begins_like_text(beginning[:_READ_BYTES]):
            raise ProviderFailed("bad_reply")
        return beginning


def check_recording(headers: Mapping[str, str]) -> None:
    """Raises `ProviderFailed` for an answer that is a text, such as an error with the status 200. A text would reach
    the client without inspection."""
    media_type = headers.get("content-type", "").lower()
    if media_type.startswith(_TEXT_TYPES):
        raise ProviderFailed("bad_reply")


def recording_headers(headers: Mapping[str, str]) -> dict[str, str]:
    """Return the headers of the client's answer: the provider's content type if it is `audio/...`, else a general
    type."""
    media_type = headers.get("content-type", "")
    return {"content-type": media_type if media_type.startswith("audio/") else _UNKNOWN_TYPE}
