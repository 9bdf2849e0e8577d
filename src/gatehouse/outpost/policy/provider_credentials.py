"""Looks up providers' credentials in the environment (docs/outposts.md, "Providers' credentials"), then in the bundle,
where they are sealed to this outpost's key.

`PROVIDER_<ID>_<FIELD>` is the credential `<field>` of the provider with that id. In the id, an underscore replaces
every character that is not a letter or digit: `PROVIDER_OPENAI_API_KEY` is the `api_key` of `openai`. If one of these
variables is set for a provider, none of its credentials are read from the bundle. A variable is ignored if no kind of
provider has its field: `PROVIDER_OPENAI_EU_API_KEY` is the `api_key` of `openai-eu`, and no credential of `openai`.
"""

import os
import re
from collections.abc import Mapping
from typing import Final

from gatehouse.engine.providers.registry import KINDS
from gatehouse.foundation.identity import TenantId
from gatehouse.outpost.policy.bundle import BundleStore

_NOT_ALPHANUMERIC: Final = re.compile("[^A-Z0-9]")
_FIELDS: Final = frozenset(field.name for kind in KINDS.values() for field in kind.credential_fields)
_NO_CREDENTIALS: Final[Mapping[str, str]] = {}


class LocalSecrets:
    """Implements the engine's `Secrets`."""

    def __init__(self, bundles: BundleStore, environment: Mapping[str, str] = os.environ) -> None:
        self._bundles = bundles
        self._environment = {name: value for name, value in environment.items() if name.startswith("PROVIDER_")}
        self._by_provider: dict[str, Mapping[str, str]] = {}

    def open(self, tenant_id: TenantId, provider_id: str, sealed: str | None) -> Mapping[str, str]:
        credentials = self._by_provider.get(provider_id)
        if credentials is None:
            credentials = self._by_provider[provider_id] = self._from_environment(provider_id)
        if credentials:
            return credentials
        in_force = self._bundles.in_force
        return (in_force.credentials.of(provider_id) if in_force is not None else None) or _NO_CREDENTIALS

    def _from_environment(self, provider_id: str) -> Mapping[str, str]:
        prefix = f"PROVIDER_{_NOT_ALPHANUMERIC.sub('_', provider_id.upper())}_"
        return {
            field: value
            for name, value in self._environment.items()
            if name.startswith(prefix) and value and (field := name.removeprefix(prefix).lower()) in _FIELDS
        }
