"""How an outpost gets its policy: at once where it has another one, else when something changes."""

import hashlib
import re
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final, NamedTuple
from uuid import UUID

import msgspec
from cryptography.hazmat.primitives.asymmetric.ec import EllipticCurvePublicKey

from gatehouse.foundation import certified, ecies
from gatehouse.foundation.identity import Caller, TenantId
from gatehouse.platform.live.credentials import InvalidToken
from gatehouse.platform.operations.outposts.service import enabled
from gatehouse.platform.ports import Host
from gatehouse.platform.uploads import Confirmed
from gatehouse.policy import signing, wire
from gatehouse.policy.wire import Contents

#: Outposts that wait for news, a worker, and of one organization.
MOST_WAITING: Final = 2_000
MOST_WAITING_OF_ONE: Final = 200
#: Seconds for which a bundle may come into force.
LIFETIME: Final = 7 * 86_400
#: Seconds after which one that has not changed is sent anew, so that the one that an outpost keeps stays young.
_RENEWED: Final = 86_400
#: What those who may not wait are told to wait, in seconds.
_LATER: Final = 5

_ETAG: Final = re.compile(r'"(\d{1,18})-([0-9a-f]{64})"').findall


class Polled(NamedTuple):
    """`signed` is None where the outpost has it already."""

    etag: str
    signed: str | None
    retry_after: int | None = None


class Waiting:
    """Who waits on this worker: bounded, so that they can never be all that it does."""

    def __init__(self) -> None:
        self._of: Counter[TenantId] = Counter()

    @contextmanager
    def place(self, tenant_id: TenantId) -> Iterator[bool]:
        """Whether there was room."""
        free = self._of.total() < MOST_WAITING and self._of[tenant_id] < MOST_WAITING_OF_ONE
        self._of[tenant_id] += free
        try:
            yield free
        finally:
            self._of[tenant_id] -= free
            if not self._of[tenant_id]:
                del self._of[tenant_id]


async def bundle(caller: Caller, host: Host, waiting: Waiting, *, token: str, known: str, seconds: float) -> Polled:
    """`token` is the caller's; `known` are the entity tags that the outpost has; `seconds` is how long it waits for
    another one.

    Raises `OutpostsDisabled`, `InvalidToken`, `PolicyUnavailable`.
    """
    assert caller.tenant_id is not None
    assert caller.outpost_id is not None
    tenant_id, news = caller.tenant_id, host.replica.news
    has = {digest: int(version) for version, digest in _ETAG(known)}
    certificate = certified.shown(token)
    key = certificate.public_key()
    # No other is verified.
    assert isinstance(key, EllipticCurvePublicKey)
    said = Confirmed(
        tenant_id=tenant_id,
        outpost_id=caller.outpost_id,
        version=0,
        at=host.clock.now(),
        serial=f"{certificate.serial_number:x}",
        ends=certificate.not_valid_after_utc.timestamp(),
    )
    # What it has it has in force: only then it asks for the next one.
    host.supply.confirmed(msgspec.structs.replace(said, version=max(has.values(), default=0)))
    deadline = time.monotonic() + seconds
    with waiting.place(tenant_id) as free:
        while True:
            await enabled(caller, host)
            if not host.ports.credentials.still_good(caller):
                raise InvalidToken
            seen = news.seen(tenant_id)
            contents = await host.supply.contents(tenant_id, max(has.values(), default=0))
            digest = _digest(contents, caller.outpost_id, key, host.clock.now())
            etag = f'"{contents.version}-{digest}"'
            if digest not in has:
                return Polled(etag, await _signed(contents, caller, key, host))
            if contents.version > has[digest]:
                # What has changed since is nothing that it is sent: it is as good as confirmed.
                has[digest] = contents.version
                host.supply.confirmed(msgspec.structs.replace(said, version=contents.version, at=host.clock.now()))
            left = deadline - time.monotonic()
            if left <= 0 or news.closed:
                return Polled(etag, None)
            if not free:
                return Polled(etag, None, _LATER)
            await news.after(seen, tenant_id, left)


def _digest(contents: Contents, outpost_id: UUID, key: EllipticCurvePublicKey, now: float) -> str:
    """Of what this outpost is sent, of the key that it is sealed to, and of the day: not everybody's begins at the same
    time."""
    day = (int(now) + outpost_id.int % _RENEWED) // _RENEWED
    to = ecies.fingerprint(key) if contents.at_rest else ""
    return hashlib.sha256(msgspec.json.encode([outpost_id, day, to, contents.digest])).hexdigest()


async def _signed(contents: Contents, caller: Caller, key: EllipticCurvePublicKey, host: Host) -> str:
    assert caller.tenant_id is not None
    assert caller.outpost_id is not None
    now, tenant_id, outpost_id = int(host.clock.now()), caller.tenant_id, caller.outpost_id
    credentials = await host.supply.credentials(contents, key, tenant_id=tenant_id, outpost_id=outpost_id)
    document = wire.encode(
        contents,
        outpost_id=outpost_id,
        tenant_id=tenant_id,
        issued_at=now,
        expires_at=now + LIFETIME,
        credentials=credentials,
    )
    return await host.signer.sign_document(document, kind=signing.TYPE)
