"""Parses the setting SMTP_URL: server, login and kind of TLS."""

from typing import Final, Literal
from urllib.parse import SplitResult, parse_qsl, unquote, urlsplit

import msgspec

#: With `starttls` the connection is encrypted by the command STARTTLS, before the login and the mail are sent. With
#: `implicit` it is encrypted from the beginning.
Tls = Literal["starttls", "implicit", "off"]

_DEFAULT_PORTS: Final[dict[str, int]] = {"smtp": 587, "smtps": 465}


_FORM: Final = (
    "an address like smtp://user:password@smtp.example.com:587 or smtps://...; encode special characters of the"
    " password, / as %2F, @ as %40, : as %3A"
)


class SmtpServer(msgspec.Struct, frozen=True, kw_only=True):
    """The server that accepts the mails. Without `username` there is no login."""

    host: str
    port: int
    tls: Tls
    username: str | None
    password: str | None

    def __repr__(self) -> str:
        return f"SmtpServer({self.host}:{self.port}, tls={self.tls})"


def parse_smtp_url(url: str) -> SmtpServer:
    """Returns the server of `smtp://user:password@host:port` or `smtps://...`. Raises `ValueError`, whose message
    contains no part of the URL."""
    try:
        parts = urlsplit(url)
    except ValueError:
        # The message of the original error contains parts of the URL.
        raise ValueError(_FORM) from None
    if parts.scheme not in _DEFAULT_PORTS or not parts.hostname or parts.path.strip("/") or parts.fragment:
        raise ValueError(_FORM)
    try:
        port = parts.port or _DEFAULT_PORTS[parts.scheme]
    except ValueError:
        raise ValueError("the port is a number from 1 to 65535") from None
    username = unquote(parts.username) if parts.username else None
    password = unquote(parts.password) if parts.password else None
    if [username, password].count(None) == 1:
        raise ValueError("needs both user and password, like smtp://user:password@smtp.example.com, or neither")
    tls = _tls(parts)
    if tls == "off" and password is not None:
        raise ValueError("a password is sent only over TLS: remove tls=off, or user and password")
    return SmtpServer(host=parts.hostname, port=port, tls=tls, username=username, password=password)


def _tls(parts: SplitResult) -> Tls:
    query = dict(parse_qsl(parts.query, keep_blank_values=True))
    value = query.pop("tls", None)
    if query or value not in {None, "off"}:
        raise ValueError("the only parameter is tls=off")
    if parts.scheme == "smtps":
        if value is not None:
            raise ValueError("smtps:// is always encrypted: use smtp:// with tls=off")
        return "implicit"
    return "starttls" if value is None else "off"
