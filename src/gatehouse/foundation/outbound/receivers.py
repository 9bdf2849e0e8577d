"""Sends requests to customers' receivers (webhooks, alerts, a SIEM), and fetches documents from URLs that customers
have entered.

Only HTTPS is used. The system's authorities and `SSL_CERT_FILE` are trusted. The egress guard checks the URL and every
address of its host, and the connection uses the checked addresses. Redirects are not followed. No proxy is used,
because a proxy would resolve the name again without the guard.
"""

import asyncio
import contextlib
import ssl
from collections.abc import Mapping
from typing import Any, Final

import aiohttp
import msgspec
from yarl import URL

from gatehouse.foundation.egress.guard import (
    EgressGuard,
    GuardedResolver,
    HostNotFound,
    SafeUrl,
)

#: length of the beginning of a response's body that is stored
MAX_BODY_CHARACTERS: Final = 1000
#: a character has at most four bytes
_MAX_BODY_BYTES: Final = 4 * MAX_BODY_CHARACTERS
#: Time for which an idle connection is kept. Some servers close idle connections after five seconds, and a request that
#: is sent at that moment is lost.
_KEEPALIVE_SECONDS: Final = 2.0


class ReceiverResponse(msgspec.Struct, frozen=True):
    """A receiver's response. `body` contains its first 1000 characters, or fewer if the others did not arrive in
    time."""

    status: int
    body: str
    milliseconds: float

    @property
    def taken(self) -> bool:
        """Returns whether the receiver has accepted the request: whether the status is 2xx."""
        return 200 <= self.status < 300

    @property
    def fault(self) -> str | None:
        """Returns a short reason why the receiver has not accepted the request, or None if it has."""
        if self.taken:
            return None
        redirect = " with a redirect, which is not followed" if 300 <= self.status < 400 else ""
        return f"the receiver answered {self.status}{redirect}"


class ReceiverFailed(Exception):
    """No response arrived. `reason` is a short text for records and logs, without content of the request."""

    def __init__(self, reason: str) -> None:
        self.reason = reason
        super().__init__(reason)


class Receivers:
    """The connection pool for receivers. A process has one. Callers limit their own concurrency. If `max_connections`
    are in use, further requests wait, within the timeout of their attempt. `tls` replaces the system's trust store."""

    def __init__(self, guard: EgressGuard, *, max_connections: int = 512, tls: ssl.SSLContext | None = None) -> None:
        self._guard = guard
        self._max_connections = max_connections
        self._tls = tls
        self._session: aiohttp.ClientSession | None = None

    @property
    def guard(self) -> EgressGuard:
        """Returns the egress guard, for senders with other protocols."""
        return self._guard

    async def check(self, url: str) -> SafeUrl:
        """Checks a URL before it is saved. Raises `UnsafeUrl`. A name that cannot be resolved now is accepted, because
        its addresses are checked again for every request."""
        safe = self._guard.check(url)
        with contextlib.suppress(HostNotFound):
            await self._guard.resolve(safe)
        return safe

    async def post(
        self, url: str, body: bytes, headers: Mapping[str, str], *, seconds: float = 10.0
    ) -> ReceiverResponse:
        """Sends a request once and returns the response. The attempt ends after `seconds` at the latest. Status and
        headers must arrive within this time; the body may be incomplete. Raises `UnsafeUrl` without connecting, and
        `ReceiverFailed`."""
        loop = asyncio.get_running_loop()
        started = loop.time()
        response = await self._request("POST", url, seconds, data=body, headers=headers)
        text = await _read_beginning(response, started + seconds)
        return ReceiverResponse(response.status, text, round((loop.time() - started) * 1000, 1))

    async def get(self, url: str, *, max_bytes: int, seconds: float = 10.0) -> bytes:
        """Returns the document at this URL. Raises `UnsafeUrl` without connecting. Raises `ReceiverFailed` if the whole
        document does not arrive within `seconds`, if it has more than `max_bytes`, or if the status is not 200."""
        deadline = asyncio.get_running_loop().time() + seconds
        response = await self._request("GET", url, seconds)
        try:
            if response.status != 200:
                raise ReceiverFailed(f"the server answered {response.status}")
            body = bytearray()
            async with asyncio.timeout_at(deadline):
                while chunk := await response.content.readany():
                    body += chunk
                    if len(body) > max_bytes:
                        raise ReceiverFailed(f"the document is larger than {max_bytes // 1024} KiB")
        except TimeoutError:
            raise ReceiverFailed(f"the document did not arrive within {seconds:g} s") from None
        except (aiohttp.ClientError, OSError):
            raise ReceiverFailed("the server closed the connection") from None
        finally:
            response.close()
        return bytes(body)

    async def _request(self, method: str, url: str, seconds: float, **options: Any) -> aiohttp.ClientResponse:
        """Returns the response once its status and headers have arrived. Raises `UnsafeUrl`, `ReceiverFailed`."""
        safe = self._guard.check(url)
        session = self._session or self._open()
        try:
            async with asyncio.timeout(seconds):
                return await session.request(method, URL(str(safe)), allow_redirects=False, **options)
        except HostNotFound as error:
            # This may be temporary, so it is not an `UnsafeUrl`: the name may be resolved at the next attempt.
            raise ReceiverFailed(error.reason) from None
        except TimeoutError:
            raise ReceiverFailed(f"no answer within {seconds:g} s") from None
        except aiohttp.ClientConnectorCertificateError:
            raise ReceiverFailed("the receiver's certificate is not trusted") from None
        except aiohttp.ClientSSLError:
            raise ReceiverFailed("TLS could not be agreed on") from None
        except aiohttp.ClientConnectorError:
            raise ReceiverFailed("the connection could not be made") from None
        except aiohttp.ClientResponseError:
            raise ReceiverFailed("the receiver's answer is not HTTP") from None
        except (aiohttp.ClientError, OSError):
            raise ReceiverFailed("the receiver closed the connection") from None

    async def close(self) -> None:
        session, self._session = self._session, None
        if session is not None:
            await session.close()

    def _open(self) -> aiohttp.ClientSession:
        connector = aiohttp.TCPConnector(
            limit=self._max_connections,
            keepalive_timeout=_KEEPALIVE_SECONDS,
            resolver=GuardedResolver(self._guard),
            ssl=self._tls or ssl.create_default_context(),
        )
        self._session = aiohttp.ClientSession(
            connector=connector,
            cookie_jar=aiohttp.DummyCookieJar(),
            headers={"User-Agent": "gatehouse", "Accept-Encoding": "identity"},
            # A small response could have an unbounded size after decompression.
            auto_decompress=False,
            # The attempt's deadline limits the whole request.
            timeout=aiohttp.ClientTimeout(total=None, sock_connect=None),
        )
        return self._session


async def _read_beginning(response: aiohttp.ClientResponse, deadline: float) -> str:
    """Returns the first characters of the body. If the body is slow or incomplete, returns those that have arrived."""
    body = bytearray()
    try:
        async with asyncio.timeout_at(deadline):
            while len(body) < _MAX_BODY_BYTES and (chunk := await response.content.readany()):
                body += chunk
    except (aiohttp.ClientError, OSError, TimeoutError):
        pass
    finally:
        # If the body has been read to its end, the connection is back in the pool and `close` has no effect.
        response.close()
    # PostgreSQL cannot store NUL in text.
    return body.decode("utf-8", errors="replace").replace("\0", "\ufffd")[:MAX_BODY_CHARACTERS]
