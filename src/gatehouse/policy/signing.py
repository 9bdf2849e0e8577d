"""Whether a bundle may come into force, judged where it arrives (decisions 9, Bundle). What is refused changes nothing:
the one that was in force before stays."""

from collections.abc import Mapping
from typing import Final
from uuid import UUID

from gatehouse.foundation import jwt
from gatehouse.foundation.errors import Unauthenticated
from gatehouse.foundation.jwt import SigningKey
from gatehouse.policy.wire import Bundle, UnreadableBundle, decode

#: `typ` of the signature: nothing else that the platform signs is taken for a bundle, and a bundle for nothing else.
TYPE: Final = "gatehouse-policy-bundle"


class BundleRefused(Exception):
    """Says why, in a sentence for the outpost's status."""


def sign(document: bytes, key: SigningKey) -> str:
    return jwt.sign_document(document, key, kind=TYPE)


def verify(
    signed: str,
    keys_by_kid: Mapping[str, SigningKey],
    *,
    outpost_id: UUID,
    in_force: int = 0,
    now: float | None = None,
) -> Bundle:
    """`in_force` is the version of the bundle until now. `now` (Unix time) is asked of one that was fetched, and not of
    one that was kept: with the platform away, an old policy is better than none.

    Raises `BundleRefused`.
    """
    try:
        bundle = decode(jwt.verify_document(signed, keys_by_kid, kind=TYPE))
    except Unauthenticated as error:
        raise BundleRefused(f"its signature is not good: {error.text}") from None
    except UnreadableBundle as error:
        raise BundleRefused(f"it cannot be read: {error}") from None
    if bundle.outpost_id != outpost_id:
        raise BundleRefused(f"it is for outpost {bundle.outpost_id}")
    if bundle.tenant_id != bundle.policy.tenant_id:
        raise BundleRefused("its policy is another organization's")
    if bundle.version < in_force:
        raise BundleRefused(f"its version {bundle.version} is older than {in_force}, which is in force")
    if now is not None and bundle.expires_at <= now:
        raise BundleRefused("it has expired")
    return bundle
