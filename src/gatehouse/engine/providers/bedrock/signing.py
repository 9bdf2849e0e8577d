"""AWS Signature Version 4 for one request of JSON, out of hashes alone.

An SDK would bring a model of every service there is to compute four HMACs; the tests hold this against its signer.
"""

import hashlib
import hmac
from datetime import UTC, datetime
from typing import Final
from urllib.parse import quote, urlsplit

import msgspec

_ALGORITHM: Final = "AWS4-HMAC-SHA256"
_PORTS: Final = {"https": ":443", "http": ":80"}
#: In a path or a query as it is sent; these need no percent sign anywhere.
_PLAIN: Final = "-_.~"


class Identity(msgspec.Struct, frozen=True, kw_only=True):
    """Who signs. `expires_at` is Unix time; None for keys that last."""

    access_key_id: str
    secret_access_key: str
    session_token: str | None = None
    expires_at: float | None = None


class Scope(msgspec.Struct, frozen=True):
    """What a signature is good for."""

    region: str
    service: str


def signed(
    method: str, url: str, body: bytes, *, identity: Identity, scope: Scope, when: datetime | None = None
) -> dict[str, str]:
    """The headers to send, in the order in which they are signed. `url` is as it goes out: what stands in it encoded
    is encoded once more here, as the service does with what it receives."""
    parts = urlsplit(url)
    now = (when or datetime.now(UTC)).strftime("%Y%m%dT%H%M%SZ")
    headers = {
        "content-type": "application/json",
        "host": parts.netloc.removesuffix(_PORTS[parts.scheme]),
        "x-amz-date": now,
    }
    if identity.session_token is not None:
        headers["x-amz-security-token"] = identity.session_token
    names = ";".join(headers)
    canonical = "\n".join(
        (
            method,
            quote(parts.path or "/", safe="/" + _PLAIN),
            "&".join(sorted(parts.query.split("&"))),
            *(f"{name}:{value}" for name, value in headers.items()),
            "",
            names,
            hashlib.sha256(body).hexdigest(),
        )
    )
    date = now[:8]
    credential = f"{date}/{scope.region}/{scope.service}/aws4_request"
    text = "\n".join((_ALGORITHM, now, credential, hashlib.sha256(canonical.encode()).hexdigest()))
    signature = _hmac(_key(identity.secret_access_key, date, scope), text).hex()
    del headers["host"]
    headers["authorization"] = (
        f"{_ALGORITHM} Credential={identity.access_key_id}/{credential}, SignedHeaders={names}, Signature={signature}"
    )
    return headers


def query_value(value: str) -> str:
    """A query's value in the only form that is signed as it is sent."""
    return quote(value, safe=_PLAIN)


def _key(secret: str, date: str, scope: Scope) -> bytes:
    key = b"AWS4" + secret.encode()
    for step in (date, scope.region, scope.service, "aws4_request"):
        key = _hmac(key, step)
    return key


def _hmac(key: bytes, text: str) -> bytes:
    return hmac.digest(key, text.encode(), "sha256")
