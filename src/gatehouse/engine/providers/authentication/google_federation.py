"""Workload identity federation of Google Cloud (RFC 8693): exchanges a token of another identity provider for an access
token of Google, directly or by impersonating a service account. The first token is read from a file or a URL.

The configuration of the federation names files and URLs, so only the operator's environment can set it.
"""

import asyncio
from collections.abc import Callable
from datetime import datetime
from pathlib import Path
from typing import Any, Final
from urllib.parse import urlsplit

import msgspec

from gatehouse.engine.providers.authentication.renewal import NotAvailable
from gatehouse.engine.providers.authentication.tokens import AccessToken, checked_token, decoded, fetch_token, post
from gatehouse.foundation.outbound import Outbound
from gatehouse.foundation.outbound.metadata import MetadataRequest

_GRANT: Final = "urn:ietf:params:oauth:grant-type:token-exchange"
_REQUESTED_TYPE: Final = "urn:ietf:params:oauth:token-type:access_token"
_LIFETIME: Final = "3600s"


class _Format(msgspec.Struct, frozen=True):
    type: str = "text"
    subject_token_field_name: str = ""


class _Source(msgspec.Struct, frozen=True):
    file: str | None = None
    url: str | None = None
    headers: dict[str, str] = {}
    format: _Format = _Format()


class ExternalAccount(msgspec.Struct):
    """A file of type `external_account`, as Google's tools write it."""

    audience: str
    subject_token_type: str
    token_url: str
    credential_source: _Source
    service_account_impersonation_url: str | None = None


class _Impersonated(msgspec.Struct, rename="camel"):
    access_token: str
    expire_time: datetime


_object: msgspec.json.Decoder[dict[str, Any]] = msgspec.json.Decoder(dict[str, Any])
_impersonated = msgspec.json.Decoder(_Impersonated)


async def exchange(
    outbound: Outbound, account: ExternalAccount, *, scope: str, request: MetadataRequest, now: Callable[[], float]
) -> AccessToken:
    """Return an access token. Raises `NotAvailable`, `OutboundFailed` and `OSError`."""
    form = {
        "grant_type": _GRANT,
        "audience": account.audience,
        "scope": scope,
        "requested_token_type": _REQUESTED_TYPE,
        "subject_token_type": account.subject_token_type,
        "subject_token": await _subject_token(account.credential_source, request),
    }
    token = await fetch_token(outbound, _secure(account.token_url), form, now)
    url = account.service_account_impersonation_url
    if url is None:
        return token
    headers = {"Content-Type": "application/json", "Authorization": f"Bearer {token.value}"}
    body = msgspec.json.encode({"scope": [scope], "lifetime": _LIFETIME})
    answer = decoded(_impersonated, await post(outbound, _secure(url), headers, body))
    return checked_token(answer.access_token, answer.expire_time.timestamp())


async def _subject_token(source: _Source, request: MetadataRequest) -> str:
    if source.file is not None:
        text = await asyncio.to_thread(Path(source.file).read_text)
    elif source.url is not None:
        text = (await request("GET", source.url, source.headers)).decode()
    else:
        raise NotAvailable("the federation's credential_source has neither a file nor a url")
    if source.format.type == "text":
        return text.strip()
    token = decoded(_object, text).get(source.format.subject_token_field_name)
    if not isinstance(token, str):
        raise NotAvailable("the federation's credential_source contains no subject token")
    return token


def _secure(url: str) -> str:
    """Return the URL if tokens may be sent to it: it uses TLS, or is an address of this machine. Raises
    `NotAvailable`."""
    parts = urlsplit(url)
    if parts.scheme == "https" or (parts.scheme == "http" and parts.hostname in {"127.0.0.1", "::1", "localhost"}):
        return url
    raise NotAvailable("the federation's URLs must begin with https://")
