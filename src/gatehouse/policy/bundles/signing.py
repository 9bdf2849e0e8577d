"""Signs and verifies bundles. If a bundle is refused, the previous bundle stays active."""

from collections.abc import Mapping
from typing import Final
from uuid import UUID

from gatehouse.foundation import jwt
from gatehouse.foundation.errors import Unauthenticated
from gatehouse.foundation.jwt import SigningKey
from gatehouse.policy.bundles.contents import PolicyBundle, UnreadableBundle, decode

#: The `typ` of the signature. It distinguishes bundles from other documents that the platform signs.
TYPE: Final = "gatehouse-policy-bundle"


class BundleRefused(Exception):
    """The bundle is refused. The message is a sentence for the status of the outpost."""


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
    """Verify a signed bundle and return it. Raises `BundleRefused`.

    `in_force` is the version of the current bundle. `now` is the current Unix time for a fetched bundle, and None for a
    stored bundle. The expiry of a stored bundle is not checked, because an outpost that cannot reach the platform
    should keep its policy.
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
        raise BundleRefused(f"its version {bundle.version} is older than {in_force}, which is active")
    if now is not None and bundle.expires_at <= now:
        raise BundleRefused("it has expired")
    return bundle
