"""Access tokens of providers: their cache, the requests to token endpoints, and the transport that sends them."""

import re
import time
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Hashable, Mapping
from typing import Any, Final, TypeVar
from urllib.parse import urlencode

import msgspec

from gatehouse.engine.providers.authentication.renewal import NotAvailable, Renewed
from gatehouse.foundation.outbound import Outbound, OutboundReply, OutboundRequest
from gatehouse.foundation.settings import EgressPolicy

#: Maximum number of cached tokens of one kind of provider. The one that was used least recently is dropped.
MAX_TOKENS: Final = 1_024
#: Lifetime of a token if the answer does not state one.
DEFAULT_LIFETIME_SECONDS: Final = 300

_NO_HEADERS: Final[Mapping[str, str]] = {}
_MAX_ANSWER_BYTES: Final = 64 * 1024
_REQUEST_TIMEOUT_SECONDS: Final = 4.0
#: Form of a token's value: visible ASCII, because it becomes part of a header.
_TOKEN: Final = re.compile(r"[!-~]{1,16384}")
#: An error code (RFC 6749, 5.2). The description beside it is not logged, because it may repeat parts of the request.
_CODE: Final = re.compile(r"[a-z_]{1,64}")


class AccessToken(msgspec.Struct, frozen=True):
    """An access token. `expires_at` is a Unix time. The representation omits the value."""

    value: str
    expires_at: float

    def __repr__(self) -> str:
        return f"AccessToken(expires_at={self.expires_at})"


class TokenAnswer(msgspec.Struct):
    """The answer of a token endpoint. `expires_on` is the Unix time that some metadata services state instead."""

    access_token: str
    expires_in: float | None = None
    expires_on: float | None = None

    def token(self, now: float) -> AccessToken:
        expires_at = now + (DEFAULT_LIFETIME_SECONDS if self.expires_in is None else self.expires_in)
        return checked_token(self.access_token, expires_at if self.expires_on is None else self.expires_on)


class _Refused(msgspec.Struct):
    error: Any = None


# Some services send numbers as texts.
_answer = msgspec.json.Decoder(TokenAnswer, strict=False)
_refused = msgspec.json.Decoder(_Refused)

Load = Callable[[], Awaitable[AccessToken]]


class TokenCache:
    """Caches the tokens of one kind of provider, by keys that identify the credentials. `reason` is the reason of
    `ProviderFailed` if there is no token."""

    def __init__(self, source: str, reason: str, now: Callable[[], float] = time.time) -> None:
        self._source = source
        self._reason = reason
        self._now = now
        self._tokens: OrderedDict[Hashable, Renewed[AccessToken]] = OrderedDict()

    def bearer(self, outbound: Outbound, key: Hashable, load: Load, provider: str) -> "Bearer":
        """Return a transport that authenticates with the token of `key`. `load` fetches a new token. `provider` is the
        provider's id, for the log."""
        token = self._tokens.get(key)
        if token is None:
            token = self._tokens[key] = Renewed(self._source, self._reason, self._now)
            if len(self._tokens) > MAX_TOKENS:
                self._tokens.popitem(last=False)
        self._tokens.move_to_end(key)
        return Bearer(outbound, token, load, provider)


class Bearer:
    """An `Outbound` that sends an access token. `send` also raises `ProviderFailed` if there is no token."""

    def __init__(self, outbound: Outbound, token: Renewed[AccessToken], load: Load, provider: str) -> None:
        self._outbound = outbound
        self._token = token
        self._load = load
        self._provider = provider

    async def send(self, request: OutboundRequest) -> OutboundReply:
        token = await self._token.get(self._load, self._provider)
        headers = {**request.headers, "Authorization": f"Bearer {token.value}"}
        reply = await self._outbound.send(msgspec.structs.replace(request, headers=headers))
        if reply.status == 401:
            self._token.discard(token)
        return reply

    async def close(self) -> None:
        """Do nothing: the wrapped `Outbound` is shared."""


def checked_token(value: str, expires_at: float) -> AccessToken:
    if not _TOKEN.fullmatch(value):
        raise NotAvailable("the token is not valid")
    return AccessToken(value, expires_at)


def read_token(body: bytes, now: float) -> AccessToken:
    """Return the token in an answer. Raises `NotAvailable`."""
    return decoded(_answer, body).token(now)


T = TypeVar("T")


def decoded(decoder: "msgspec.json.Decoder[T]", document: bytes | str) -> T:
    """Return a decoded document. Raises `NotAvailable`."""
    try:
        return decoder.decode(document)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        raise NotAvailable("the answer is not valid") from None


async def fetch_token(
    outbound: Outbound,
    url: str,
    form: Mapping[str, str],
    now: Callable[[], float] = time.time,
    *,
    headers: Mapping[str, str] = _NO_HEADERS,
    egress: EgressPolicy | None = None,
) -> AccessToken:
    """Fetch a token from a token endpoint (RFC 6749). `headers` are additional ones. Raises `NotAvailable` and
    `OutboundFailed`."""
    own = {"Content-Type": "application/x-www-form-urlencoded", "Accept": "application/json"}
    return read_token(await post(outbound, url, {**headers, **own}, urlencode(form).encode(), egress=egress), now())


async def post(
    outbound: Outbound, url: str, headers: Mapping[str, str], body: bytes, *, egress: EgressPolicy | None = None
) -> bytes:
    """Send a POST to a token endpoint and return the body of its answer. `egress` is the organization's egress policy
    if the organization has set the address. Raises `NotAvailable` and `OutboundFailed`."""
    limit = _REQUEST_TIMEOUT_SECONDS
    request = OutboundRequest(
        method="POST", url=url, headers=headers, body=body, connect_timeout=limit, first_byte_timeout=limit,
        idle_timeout=limit, total_timeout=limit, egress=egress,
    )  # fmt: skip
    reply = await outbound.send(request)
    try:
        answer = await reply.read(_MAX_ANSWER_BYTES)
    finally:
        await reply.close()
    if reply.status == 200:
        return answer
    cause = f"the token endpoint answers with status {reply.status} {_code(answer)}".strip()
    raise NotAvailable(cause, is_refused=reply.status in {400, 401, 403})


def _code(answer: bytes) -> str:
    try:
        error = _refused.decode(answer).error
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return ""
    return error if isinstance(error, str) and _CODE.fullmatch(error) else ""
