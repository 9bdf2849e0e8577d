"""Looks up providers' credentials in the environment (docs/outposts.md, "Providers' credentials"), then in the bundle,
where they are sealed to this outpost's key.

`PROVIDER_<ID>_<FIELD>` is the credential `<field>` of the provider with that id. In the id, an underscore replaces
every character that is not a letter or digit: `PROVIDER_OPENAI_API_KEY` is the `api_key` of `openai`. If one of these
variables is set for a provider, none of its credentials are read from the bundle. A variable is ignored if no kind of
provider has its field: `PROVIDER_OPENAI_EU_API_KEY` is the `api_key` of `openai-eu`, and no credential of `openai`.

Variables that belong to several providers of the bundle (`openai` and `OpenAI`) are ignored, so that the key of one is
never sent to the address of another.
"""

import os
from collections import defaultdict
from collections.abc import Mapping
from typing import Final

import structlog

from gatehouse.engine.providers.credentials import environment_name
from gatehouse.engine.providers.registry import KINDS
from gatehouse.foundation.identity import TenantId
from gatehouse.outpost.policy.bundle import BundleStore, InForce

log = structlog.get_logger(__name__)

_FIELDS: Final = frozenset(field.name for kind in KINDS.values() for field in kind.credential_fields)
_NO_CREDENTIALS: Final[Mapping[str, str]] = {}


class LocalSecrets:
    """Implements the engine's `Secrets`."""

    def __init__(self, bundles: BundleStore, environment: Mapping[str, str] = os.environ) -> None:
        self._bundles = bundles
        self._environment = {name: value for name, value in environment.items() if name.startswith("PROVIDER_")}
        self._in_force: InForce | None = None
        self._ambiguous: frozenset[str] = frozenset()
        self._by_provider: dict[str, Mapping[str, str]] = {}

    def open(self, tenant_id: TenantId, provider_id: str, sealed: str | None) -> Mapping[str, str]:
        in_force = self._bundles.in_force
        if in_force is not self._in_force:
            self._in_force = in_force
            self._by_provider = {}
            self._ambiguous = self._ambiguous_ids()
        credentials = self._by_provider.get(provider_id)
        if credentials is None:
            credentials = self._by_provider[provider_id] = self._from_environment(provider_id)
        if credentials:
            return credentials
        return (in_force.credentials.of(provider_id) if in_force is not None else None) or _NO_CREDENTIALS

    def _ambiguous_ids(self) -> frozenset[str]:
        """Return the ids of the bundle's providers that have the same variables as another, and log those that are
        set."""
        by_name: dict[str, set[str]] = defaultdict(set)
        for provider_id in () if self._in_force is None else self._in_force.snapshot.providers:
            by_name[environment_name(provider_id)].add(provider_id)
        ambiguous = [ids for ids in by_name.values() if len(ids) > 1]
        for ids in ambiguous:
            if self._variables(next(iter(ids))):
                log.warning("provider_credentials.ambiguous_variables", providers=sorted(ids))
        return frozenset().union(*ambiguous)

    def _from_environment(self, provider_id: str) -> Mapping[str, str]:
        return _NO_CREDENTIALS if provider_id in self._ambiguous else self._variables(provider_id)

    def _variables(self, provider_id: str) -> Mapping[str, str]:
        prefix = f"PROVIDER_{environment_name(provider_id)}_"
        return {
            field: value
            for name, value in self._environment.items()
            if name.startswith(prefix) and value and (field := name.removeprefix(prefix).lower()) in _FIELDS
        }
