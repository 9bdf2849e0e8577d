"""Gemini's errors whose HTTP status alone is misleading."""

import re
from collections.abc import Iterable, Mapping

import msgspec

from gatehouse.engine.providers.failure import ProviderFailed, of_status


class _Detail(msgspec.Struct, rename="camel"):
    reason: str = ""
    retry_delay: str = ""


class _Error(msgspec.Struct):
    status: str = ""
    details: list[_Detail] = []


class _FailureBody(msgspec.Struct):
    error: _Error


_body = msgspec.json.Decoder(_FailureBody)
_DELAY_SECONDS = re.compile(r"(\d+(?:\.\d+)?)s")


def failure_of(status: int, headers: Mapping[str, str], body: bytes, secrets: Iterable[str]) -> ProviderFailed:
    """Return the failure of an answer. An invalid key and an account without permission have status 400 here, although
    the request is not at fault; the delay before a retry is in the body."""
    try:
        error = _body.decode(body).error
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return of_status(status, headers, body, secrets)
    if status == 400 and any(detail.reason.startswith("API_KEY_") for detail in error.details):
        return ProviderFailed("unauthorized", status=status)
    if status == 400 and error.status == "FAILED_PRECONDITION":
        return ProviderFailed("http_400", status=status)
    delays = (_DELAY_SECONDS.fullmatch(detail.retry_delay) for detail in error.details)
    delay = next((match[1] for match in delays if match), None)
    if delay is not None and "retry-after" not in headers:
        headers = {"retry-after": delay}
    return of_status(status, headers, body, secrets)
