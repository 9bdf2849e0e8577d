"""Providers' credentials that come with the bundle, where the organization sends them: sealed to the key of this
outpost's certificate (`policy.wire`). They are in clear in memory alone."""

from collections.abc import Mapping, Sequence
from typing import Final

import msgspec
from cryptography.hazmat.primitives.asymmetric.ec import EllipticCurvePrivateKey

from gatehouse.foundation import ecies
from gatehouse.foundation.ecies import CannotOpen
from gatehouse.policy.wire import Bundle, sealing_context


class Opened:
    """One bundle's. Shows nothing of them where it is printed."""

    __slots__ = ("_by_provider", "unopened")

    def __init__(self, by_provider: Mapping[str, Mapping[str, str]], unopened: tuple[str, ...] = ()) -> None:
        self._by_provider = by_provider
        #: providers whose credentials are sealed to a key that is not at hand
        self.unopened = unopened

    def of(self, provider_id: str) -> Mapping[str, str] | None:
        return self._by_provider.get(provider_id)

    def __repr__(self) -> str:
        return f"Opened({sorted(self._by_provider)})"


NOTHING: Final = Opened({})


def opened(bundle: Bundle, keys: Sequence[EllipticCurvePrivateKey]) -> Opened:
    """`keys` are the certificate's, and the one before a renewal: what was under way then is sealed to that one. The
    platform sends it anew with the next question, which shows the new certificate."""
    found: dict[str, Mapping[str, str]] = {}
    for provider_id, sealed in bundle.credentials.items():
        context = sealing_context(bundle.outpost_id, bundle.tenant_id, provider_id)
        for key in keys:
            try:
                clear = ecies.unseal(sealed, key, context=context)
                found[provider_id] = msgspec.json.decode(clear, type=dict[str, str])
                break
            except (CannotOpen, msgspec.DecodeError):
                continue
    return Opened(found, tuple(sorted(bundle.credentials.keys() - found.keys())))
