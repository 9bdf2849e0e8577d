"""HTTP client for addresses that the operator has configured: the platform and the portal of an outpost, the outpost's
peers, a trace collector, a cloud's metadata service.

These addresses come from the environment, never from an organization, so the egress guard does not apply
(docs/security.md, "Outgoing connections"). Credentials must be sent only to the configured address. So redirects are
not followed, cookies are not stored, and neither the environment's proxies nor netrc files are used.
"""

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from ssl import SSLContext
from typing import Final

import aiohttp

#: maximum time to connect, which is part of the time for the whole request
_CONNECT_TIMEOUT_SECONDS: Final = 5.0


class OversizedResponse(aiohttp.ClientError):
    """A response's body is larger than its limit."""


class OperatorClient:
    """A connection pool, opened at the first request. Use and close it in the same event loop."""

    def __init__(self) -> None:
        self._session: aiohttp.ClientSession | None = None

    @asynccontextmanager
    async def request(
        self,
        method: str,
        url: str,
        *,
        headers: Mapping[str, str],
        body: bytes | None = None,
        seconds: float,
        tls: SSLContext | None = None,
    ) -> AsyncIterator[aiohttp.ClientResponse]:
        """Sends a request and yields its response. `seconds` limits the time for the request and for the reading of the
        response together. `tls` replaces the system's trust store.

        Raises `aiohttp.ClientError`, `OSError` and `TimeoutError`.
        """
        if self._session is None:
            self._session = aiohttp.ClientSession(cookie_jar=aiohttp.DummyCookieJar(), trust_env=False)
        async with self._session.request(
            method, url, headers=headers, data=body, allow_redirects=False, ssl=tls or True,
            timeout=aiohttp.ClientTimeout(total=seconds, connect=_CONNECT_TIMEOUT_SECONDS),
        ) as response:  # fmt: skip
            yield response

    async def close(self) -> None:
        session, self._session = self._session, None
        if session is not None:
            await session.close()


async def read_bounded(response: aiohttp.ClientResponse, max_bytes: int) -> bytes:
    """Returns the whole body. Raises `OversizedResponse` beyond `max_bytes`."""
    body = bytearray()
    async for chunk in response.content.iter_any():
        body += chunk
        if len(body) > max_bytes:
            raise OversizedResponse(f"the body has more than {max_bytes} bytes")
    return bytes(body)
