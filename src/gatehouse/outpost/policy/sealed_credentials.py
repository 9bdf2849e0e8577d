"""Decrypts the credentials of providers and MCP servers in a bundle. An organization may send them to its outposts,
sealed to the key of the outpost's certificate (`policy.bundles.contents`). Their plaintext exists only in memory."""

from collections.abc import Mapping, Sequence
from typing import Final

import msgspec
from cryptography.hazmat.primitives.asymmetric.ec import EllipticCurvePrivateKey

from gatehouse.foundation.secrets import ecies
from gatehouse.foundation.secrets.ecies import CannotDecrypt
from gatehouse.policy.bundles.contents import PolicyBundle, sealing_context


class OpenedCredentials:
    """The decrypted credentials of one bundle. The repr contains no credentials."""

    __slots__ = ("_by_provider", "unopened")

    def __init__(self, by_provider: Mapping[str, Mapping[str, str]], unopened: tuple[str, ...] = ()) -> None:
        self._by_provider = by_provider
        #: Providers whose credentials could not be decrypted, because they are sealed to another key.
        self.unopened = unopened

    def of(self, provider_id: str) -> Mapping[str, str] | None:
        return self._by_provider.get(provider_id)

    def __repr__(self) -> str:
        return f"OpenedCredentials({sorted(self._by_provider)})"


NO_CREDENTIALS: Final = OpenedCredentials({})


def open_credentials(bundle: PolicyBundle, keys: Sequence[EllipticCurvePrivateKey]) -> OpenedCredentials:
    """Decrypts the bundle's credentials. `keys` are the key of the certificate and, after a renewal, the former key.

    The former key is needed because a bundle that was sent before the renewal is sealed to it. The next poll presents
    the new certificate, and the platform then seals to the new key.
    """
    credentials: dict[str, Mapping[str, str]] = {}
    for provider_id, sealed in bundle.credentials.items():
        context = sealing_context(bundle.outpost_id, bundle.tenant_id, provider_id)
        for key in keys:
            try:
                plaintext = ecies.unseal(sealed, key, context=context)
                credentials[provider_id] = msgspec.json.decode(plaintext, type=dict[str, str])
                break
            except (CannotDecrypt, msgspec.DecodeError):
                continue
    return OpenedCredentials(credentials, tuple(sorted(bundle.credentials.keys() - credentials.keys())))
