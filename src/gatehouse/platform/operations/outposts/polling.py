"""Long polling of the policy bundle. Answers at once if the outpost has another bundle, and otherwise when the bundle
changes.
"""

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

from gatehouse.foundation.certificates import x5c
from gatehouse.foundation.identity import Caller, TenantId
from gatehouse.foundation.secrets import ecies
from gatehouse.platform.live.credentials import InvalidBearerToken
from gatehouse.platform.live.outpost_records import OutpostConfirmation
from gatehouse.platform.operations.outposts.service import enabled
from gatehouse.platform.request.ports import Host
from gatehouse.policy.bundles import contents as bundle_contents
from gatehouse.policy.bundles import signing
from gatehouse.policy.bundles.contents import BundleContents

#: Maximum number of outposts that wait on one worker, in total and of one organization.
MAX_WAITING_OUTPOSTS: Final = 2_000
MAX_WAITING_OUTPOSTS_PER_TENANT: Final = 200
#: Time after the creation of a bundle within which an outpost may activate it.
BUNDLE_LIFETIME_SECONDS: Final = 7 * 86_400
#: Time after which an unchanged bundle is sent again, so that the bundle of an outpost is never close to its expiry.
_RENEWAL_SECONDS: Final = 86_400
#: Value of `Retry-After` if too many outposts wait already.
_RETRY_AFTER_SECONDS: Final = 5

_find_etags: Final = re.compile(r'"(\d{1,18})-([0-9a-f]{64})"').findall


class PollResult(NamedTuple):
    """The answer to a poll. `signed` is None if the outpost already has the bundle. `retry_after` is in seconds."""

    etag: str
    signed: str | None
    retry_after: int | None = None


class WaitingOutposts:
    """Counts the outposts that wait on this worker. Their number is bounded, so that polling cannot use up the
    worker."""

    def __init__(self) -> None:
        self._waiting_by_tenant: Counter[TenantId] = Counter()

    @contextmanager
    def place(self, tenant_id: TenantId) -> Iterator[bool]:
        """Reserve a place for the duration of the block. Yields whether a place was free."""
        reserved = (
            self._waiting_by_tenant.total() < MAX_WAITING_OUTPOSTS
            and self._waiting_by_tenant[tenant_id] < MAX_WAITING_OUTPOSTS_PER_TENANT
        )
        self._waiting_by_tenant[tenant_id] += reserved
        try:
            yield reserved
        finally:
            self._waiting_by_tenant[tenant_id] -= reserved
            if not self._waiting_by_tenant[tenant_id]:
                del self._waiting_by_tenant[tenant_id]


async def bundle(
    caller: Caller, host: Host, waiting: WaitingOutposts, *, token: str, if_none_match: str, wait_seconds: float
) -> PollResult:
    """Return the bundle of the outpost, after at most `wait_seconds`. `token` is the token of the caller.
    `if_none_match` contains the entity tags of the bundles that the outpost has.

    Raises `OutpostsDisabled`, `InvalidBearerToken` and `PolicyUnavailable`.
    """
    assert caller.tenant_id is not None
    assert caller.outpost_id is not None
    tenant_id, news = caller.tenant_id, host.replica.news
    versions = {digest: int(version) for version, digest in _find_etags(if_none_match)}
    certificate = x5c.certificate_of(token)
    key = certificate.public_key()
    # Authentication accepts only keys of this type.
    assert isinstance(key, EllipticCurvePublicKey)
    confirmation = OutpostConfirmation(
        tenant_id=tenant_id,
        outpost_id=caller.outpost_id,
        version=0,
        at=host.clock.now(),
        serial=f"{certificate.serial_number:x}",
        ends=certificate.not_valid_after_utc.timestamp(),
    )
    # An outpost sends only versions of bundles that it has activated.
    host.supply.confirmed(msgspec.structs.replace(confirmation, version=max(versions.values(), default=0)))
    deadline = time.monotonic() + wait_seconds
    with waiting.place(tenant_id) as may_wait:
        while True:
            await enabled(caller, host)
            if not host.ports.credentials.still_good(caller):
                raise InvalidBearerToken
            seen = news.seen(tenant_id)
            contents = await host.supply.contents(tenant_id, max(versions.values(), default=0))
            digest = _digest(contents, caller.outpost_id, key, host.clock.now())
            etag = f'"{contents.version}-{digest}"'
            if digest not in versions:
                return PollResult(etag, await _signed(contents, caller, key, host))
            if contents.version > versions[digest]:
                # The new version has the same contents for this outpost, so it is treated as confirmed.
                versions[digest] = contents.version
                host.supply.confirmed(
                    msgspec.structs.replace(confirmation, version=contents.version, at=host.clock.now())
                )
            remaining_seconds = deadline - time.monotonic()
            if remaining_seconds <= 0 or news.closed:
                return PollResult(etag, None)
            if not may_wait:
                return PollResult(etag, None, _RETRY_AFTER_SECONDS)
            await news.after(seen, tenant_id, remaining_seconds)


def _digest(contents: BundleContents, outpost_id: UUID, key: EllipticCurvePublicKey, now: float) -> str:
    """Return a digest of the contents, of the key to which credentials are sealed, and of the day. The day of each
    outpost begins at another time, which spreads the renewals over the day."""
    day = (int(now) + outpost_id.int % _RENEWAL_SECONDS) // _RENEWAL_SECONDS
    recipient = ecies.fingerprint(key) if contents.at_rest else ""
    return hashlib.sha256(msgspec.json.encode([outpost_id, day, recipient, contents.digest])).hexdigest()


async def _signed(contents: BundleContents, caller: Caller, key: EllipticCurvePublicKey, host: Host) -> str:
    assert caller.tenant_id is not None
    assert caller.outpost_id is not None
    now, tenant_id, outpost_id = int(host.clock.now()), caller.tenant_id, caller.outpost_id
    credentials = await host.supply.credentials(contents, key, tenant_id=tenant_id, outpost_id=outpost_id)
    document = bundle_contents.encode(
        contents,
        outpost_id=outpost_id,
        tenant_id=tenant_id,
        issued_at=now,
        expires_at=now + BUNDLE_LIFETIME_SECONDS,
        credentials=credentials,
    )
    return await host.signer.sign_document(document, kind=signing.TYPE)
