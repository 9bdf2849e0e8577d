"""Requests to a cloud's metadata service, whose addresses the egress guard refuses for all other callers.

The requests come from this machine and its operator's environment, never from a customer: fixed paths, no proxy, no
redirects, small responses, short timeouts.
"""

from collections.abc import Mapping
from typing import Final

import aiohttp

from gatehouse.foundation.outbound import BrokenOff, ConnectFailed, OutboundFailed, OutboundTimeout, ReplyTooLarge

TIMEOUT_SECONDS: Final = 2.0
MAX_BYTES: Final = 64 * 1024


async def request_metadata(method: str, url: str, headers: Mapping[str, str]) -> bytes:
    """Return the body of a response with status 200. Raises `OutboundFailed` for anything else."""
    timeout = aiohttp.ClientTimeout(total=TIMEOUT_SECONDS)
    try:
        async with (
            aiohttp.ClientSession(timeout=timeout, cookie_jar=aiohttp.DummyCookieJar()) as session,
            session.request(method, url, headers=headers, allow_redirects=False) as answer,
        ):
            body = await answer.content.read(MAX_BYTES + 1)
            while len(body) <= MAX_BYTES and (more := await answer.content.read(MAX_BYTES)):
                body += more
    except TimeoutError:
        raise OutboundTimeout from None
    except aiohttp.ClientConnectorError:
        raise ConnectFailed from None
    except (aiohttp.ClientError, OSError, ValueError):
        raise BrokenOff from None
    if len(body) > MAX_BYTES:
        raise ReplyTooLarge
    if answer.status != 200:
        raise OutboundFailed
    return body
