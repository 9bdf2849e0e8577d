"""Computes AWS Signature Version 4 for one JSON request.

A signature takes five HMACs, so the gateway does not need AWS's SDK, which contains descriptions of all services. The
tests compare the signatures with those of the SDK.
"""

import hashlib
import hmac
from datetime import UTC, datetime
from typing import Final
from urllib.parse import quote, urlsplit

import msgspec

_ALGORITHM: Final = "AWS4-HMAC-SHA256"
_DEFAULT_PORTS: Final = {"https": ":443", "http": ":80"}
#: Characters that are never percent-encoded in a path or a query.
_UNRESERVED: Final = "-_.~"


#: Domains of partitions other than the default, by prefixes of their regions.
_DOMAINS: Final = {"cn": "amazonaws.com.cn", "eusc": "amazonaws.eu"}


def domain_of(region: str) -> str:
    """Return the domain of AWS's services in a region."""
    return _DOMAINS.get(region.partition("-")[0], "amazonaws.com")


class SigningIdentity(msgspec.Struct, frozen=True, kw_only=True):
    """The keys to sign with. `expires_at` is Unix time; None for keys that do not expire."""

    access_key_id: str
    secret_access_key: str
    session_token: str | None = None
    expires_at: float | None = None


class Scope(msgspec.Struct, frozen=True):
    """The region and the service that a signature is valid for."""

    region: str
    service: str


def signed(
    method: str, url: str, body: bytes, *, identity: SigningIdentity, scope: Scope, when: datetime | None = None
) -> dict[str, str]:
    """Return the headers to send. All of them are signed, except `authorization`, which has the signature. `host` is
    also signed, but not returned, because the HTTP client adds it.

    `url` is the URL as sent. Its path is percent-encoded a second time for the signature, because the service does so
    too."""
    parts = urlsplit(url)
    now = (when or datetime.now(UTC)).strftime("%Y%m%dT%H%M%SZ")
    headers = {
        "content-type": "application/json",
        "host": parts.netloc.removesuffix(_DEFAULT_PORTS[parts.scheme]),
        "x-amz-date": now,
    }
    if identity.session_token is not None:
        headers["x-amz-security-token"] = identity.session_token
    names = ";".join(headers)
    canonical = "\n".join(
        (
            method,
            quote(parts.path or "/", safe="/" + _UNRESERVED),
            "&".join(sorted(parts.query.split("&"))),
            *(f"{name}:{value}" for name, value in headers.items()),
            "",
            names,
            hashlib.sha256(body).hexdigest(),
        )
    )
    date = now[:8]
    credential = f"{date}/{scope.region}/{scope.service}/aws4_request"
    string_to_sign = "\n".join((_ALGORITHM, now, credential, hashlib.sha256(canonical.encode()).hexdigest()))
    signature = _hmac(_key(identity.secret_access_key, date, scope), string_to_sign).hex()
    del headers["host"]
    headers["authorization"] = (
        f"{_ALGORITHM} Credential={identity.access_key_id}/{credential}, SignedHeaders={names}, Signature={signature}"
    )
    return headers


def query_value(value: str) -> str:
    """Percent-encode a query value as the signature requires, so that the sent value and the signed value are equal."""
    return quote(value, safe=_UNRESERVED)


def _key(secret: str, date: str, scope: Scope) -> bytes:
    key = b"AWS4" + secret.encode()
    for step in (date, scope.region, scope.service, "aws4_request"):
        key = _hmac(key, step)
    return key


def _hmac(key: bytes, text: str) -> bytes:
    return hmac.digest(key, text.encode(), "sha256")
