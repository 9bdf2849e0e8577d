"""Sends to the URLs of customers' receivers: webhooks, alerts, a SIEM (reference 3, Webhooks, Delivery rules).

HTTPS alone, trusted by the system's authorities and `SSL_CERT_FILE`. The egress guard judges the URL and every address
of its host, and the connection goes to the addresses that it judged. No redirect is followed, no proxy asked: a proxy
would look the name up again, unguarded.
"""

import asyncio
import contextlib
import ssl
from collections.abc import Mapping
from typing import Final

import aiohttp
import msgspec
from yarl import URL

from gatehouse.foundation.egress import EgressGuard, GuardedResolver, HostNotFound, SafeUrl

#: What is kept of an answer.
KEPT_CHARACTERS: Final = 1000
#: A character has four bytes at most.
_KEPT_BYTES: Final = 4 * KEPT_CHARACTERS
#: Short: some servers close idle connections after five seconds, and what is sent just then is lost.
_KEEPALIVE_SECONDS: Final = 2.0


class Received(msgspec.Struct, frozen=True):
    """A receiver's answer. `body` holds its first 1000 characters, or what of them has come in time."""

    status: int
    body: str
    milliseconds: float

    @property
    def taken(self) -> bool:
        """Whether the receiver has taken what was sent: only 2xx says so."""
        return 200 <= self.status < 300

    @property
    def fault(self) -> str | None:
        """Why it has not, in a few words."""
        if self.taken:
            return None
        redirect = " with a redirect, which is not followed" if 300 <= self.status < 400 else ""
        return f"the receiver answered {self.status}{redirect}"


class ReceiverFailed(Exception):
    """No answer came. `reason` is for records and logs: it says what happened and holds nothing of what was sent."""

    def __init__(self, reason: str) -> None:
        self.reason = reason
        super().__init__(reason)


class Receivers:
    """One pool of connections for all of a process. Whoever sends bounds how much it sends at once; beyond
    `max_connections` they wait, within the time of their attempt. `tls` replaces the system's trust."""

    def __init__(self, guard: EgressGuard, *, max_connections: int = 512, tls: ssl.SSLContext | None = None) -> None:
        self._guard = guard
        self._max_connections = max_connections
        self._tls = tls
        self._session: aiohttp.ClientSession | None = None

    @property
    def guard(self) -> EgressGuard:
        """Who judges: for whoever speaks to a receiver in another way."""
        return self._guard

    async def check(self, url: str) -> SafeUrl:
        """For a URL that is about to be saved. Raises `UnsafeUrl`. A name that cannot be looked up now passes: it is
        judged again whenever something is sent."""
        safe = self._guard.check(url)
        with contextlib.suppress(HostNotFound):
            await self._guard.resolve(safe)
        return safe

    async def post(self, url: str, body: bytes, headers: Mapping[str, str], *, seconds: float = 10.0) -> Received:
        """One attempt, over after `seconds` however slowly the receiver talks. An answer is one once its status and
        headers are there. Raises `UnsafeUrl` (nothing was connected), `ReceiverFailed`."""
        safe = self._guard.check(url)
        session = self._session or self._open()
        loop = asyncio.get_running_loop()
        began = loop.time()
        deadline = began + seconds
        try:
            async with asyncio.timeout_at(deadline):
                response = await session.post(URL(str(safe)), data=body, headers=headers, allow_redirects=False)
        except HostNotFound as error:
            # Names come and go: this one may be there the next time.
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
        text = await _beginning(response, deadline)
        return Received(response.status, text, round((loop.time() - began) * 1000, 1))

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
            # What a small answer becomes when it is unpacked has no bound.
            auto_decompress=False,
            # An attempt's own deadline bounds all of it.
            timeout=aiohttp.ClientTimeout(total=None, sock_connect=None),
        )
        return self._session


async def _beginning(response: aiohttp.ClientResponse, deadline: float) -> str:
    """What is kept of the body. That it breaks off, or drips, changes nothing about the answer."""
    kept = bytearray()
    try:
        async with asyncio.timeout_at(deadline):
            while len(kept) < _KEPT_BYTES and (chunk := await response.content.readany()):
                kept += chunk
    except (aiohttp.ClientError, OSError, TimeoutError):
        pass
    finally:
        # Read to its end it is back in the pool already, and this does nothing.
        response.close()
    # PostgreSQL's texts hold no NUL.
    return kept.decode("utf-8", errors="replace").replace("\0", "\ufffd")[:KEPT_CHARACTERS]
