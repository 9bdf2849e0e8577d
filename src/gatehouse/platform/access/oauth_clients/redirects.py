"""Validates the redirect URIs of clients (RFC 6749, 3.1.2; RFC 8252, 7.3)."""

from typing import Final
from urllib.parse import urlsplit

_LOOPBACK_HOSTS: Final = {"127.0.0.1", "::1", "localhost"}


def redirect_uri(text: str) -> str:
    """Return the text if it is a valid redirect URI. Raises `ValueError`."""
    # Rejects characters that browsers and parsers interpret differently.
    if not text.isascii() or any(
        character.isspace() or not character.isprintable() or character in "\\*" for character in text
    ):
        raise ValueError("contains a character that is not allowed in a URL")
    parts = urlsplit(text)
    if not parts.hostname or "@" in parts.netloc or "#" in text:
        raise ValueError("must be a URL with a host, without a user and without a fragment")
    _ = parts.port  # raises ValueError
    if parts.scheme != "https" and not (parts.scheme == "http" and parts.hostname in _LOOPBACK_HOSTS):
        raise ValueError("must be https, or http on a loopback address")
    return text


def origin(uri: str) -> str:
    """Return scheme, host and port of a redirect URI, in the form of a content security policy."""
    parts = urlsplit(uri)
    return f"{parts.scheme}://{parts.netloc}"
