"""Requests to a cloud's metadata service. The egress guard refuses its addresses to all other callers.

The URLs come from the code and the operator's environment, never from a customer. Their paths are fixed. No proxy is
used, redirects are not followed, responses are small and timeouts are short.
"""

from collections.abc import Awaitable, Callable, Mapping
from typing import Final, TypeAlias

import aiohttp

from gatehouse.foundation.outbound import BrokenOff, ConnectFailed, OutboundFailed, OutboundTimeout, ReplyTooLarge
from gatehouse.foundation.outbound.operator_client import OperatorClient, OversizedResponse, read_bounded

#: Sends a metadata request: method, URL, headers.
MetadataRequest: TypeAlias = Callable[[str, str, Mapping[str, str]], Awaitable[bytes]]

TIMEOUT_SECONDS: Final = 2.0
MAX_BYTES: Final = 64 * 1024


async def request_metadata(method: str, url: str, headers: Mapping[str, str]) -> bytes:
    """Returns the body of a response with status 200. Raises `OutboundFailed` for another status, or if there is no
    response."""
    client = OperatorClient()
    try:
        async with client.request(method, url, headers=headers, seconds=TIMEOUT_SECONDS) as answer:
            body = await read_bounded(answer, MAX_BYTES)
    except OversizedResponse:
        raise ReplyTooLarge from None
    except TimeoutError:
        raise OutboundTimeout from None
    except aiohttp.ClientConnectorError:
        raise ConnectFailed from None
    except (aiohttp.ClientError, OSError, ValueError):
        raise BrokenOff from None
    finally:
        await client.close()
    if answer.status != 200:
        raise OutboundFailed
    return body
