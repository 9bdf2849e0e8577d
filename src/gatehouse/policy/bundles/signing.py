"""Signs and verifies bundles. A refused bundle changes nothing: the previous one stays in force."""

from collections.abc import Mapping
from typing import Final
from uuid import UUID

from gatehouse.foundation import jwt
from gatehouse.foundation.errors import Unauthenticated
from gatehouse.foundation.jwt import SigningKey
from gatehouse.policy.bundles.contents import PolicyBundle, UnreadableBundle, decode

#: `typ` of the signature, which distinguishes bundles from everything else that the platform signs.
TYPE: Final = "gatehouse-policy-bundle"


class BundleRefused(Exception):
    """A refused bundle; the message is a sentence for the outpost's status."""


def sign(document: bytes, key: SigningKey) -> str:
    return jwt.sign_document(document, key, kind=TYPE)


def verify(
    signed: str,
    keys_by_kid: Mapping[str, SigningKey],
    *,
    outpost_id: UUID,
    in_force: int = 0,
    now: float | None = None,
) -> PolicyBundle:
    """Return the bundle. `in_force` is the version of the present one. `now` (Unix time) is set for a fetched bundle,
    and None for a stored one: while the platform is unreachable, an expired policy is better than none.

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
