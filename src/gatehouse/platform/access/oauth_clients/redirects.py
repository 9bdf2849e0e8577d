"""Where a client may have people sent back to (RFC 6749, 3.1.2; RFC 8252, 7.3)."""

from typing import Final
from urllib.parse import urlsplit

_LOOPBACK: Final = {"127.0.0.1", "::1", "localhost"}


def redirect_uri(text: str) -> str:
    """The same text, if a code may be sent there. Raises `ValueError`."""
    # What browsers and parsers read differently is not a question here.
    if not text.isascii() or any(mark.isspace() or not mark.isprintable() or mark in "\\*" for mark in text):
        raise ValueError("has characters that a URL does not have")
    parts = urlsplit(text)
    if not parts.hostname or "@" in parts.netloc or "#" in text:
        raise ValueError("a URL with a host, without a user and without a fragment")
    _ = parts.port  # raises ValueError
    if parts.scheme != "https" and not (parts.scheme == "http" and parts.hostname in _LOOPBACK):
        raise ValueError("https, or http on a loopback address")
    return text


def origin(uri: str) -> str:
    """Scheme, host and port of a redirect URI, as a content security policy names them."""
    parts = urlsplit(uri)
    return f"{parts.scheme}://{parts.netloc}"
