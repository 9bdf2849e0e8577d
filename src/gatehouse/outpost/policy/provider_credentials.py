"""Looks up providers' credentials in the environment (docs/outposts.md, "Providers' credentials"), then in the bundle,
where they are sealed to this outpost's key.

`PROVIDER_<ID>_<FIELD>` is the credential `<field>` of the provider with that id. In the id, an underscore replaces
every character that is not a letter or digit: `PROVIDER_OPENAI_API_KEY` is the `api_key` of `openai`. If one of these
variables is set for a provider, none of its credentials are read from the bundle. A variable is ignored if no kind of
provider has its field: `PROVIDER_OPENAI_EU_API_KEY` is the `api_key` of `openai-eu`, and no credential of `openai`.

Variables that belong to several providers of the bundle (`openai` and `OpenAI`) are ignored, so that the key of one is
never sent to the address of another.

`PROVIDER_<ID>__<LABEL>_<FIELD>` belongs to a further credential of the provider: `PROVIDER_OPENAI__SECOND_API_KEY` is
the `api_key` of the credential `second` of `openai`.
"""

import os
from collections import defaultdict
from collections.abc import Iterator, Mapping
from typing import Final

import structlog

from gatehouse.engine.providers.credentials import environment_name
from gatehouse.engine.providers.registry import KINDS
from gatehouse.foundation.identity import TenantId
from gatehouse.outpost.policy.bundle import BundleStore, InForce
from gatehouse.outpost.policy.mcp_credentials import McpSecrets
from gatehouse.policy.catalog import DEFAULT_CREDENTIAL, credential_key, provider_id_of

log = structlog.get_logger(__name__)

_FIELDS: Final = frozenset(field.name for kind in KINDS.values() for field in kind.credential_fields)
_NO_CREDENTIALS: Final[Mapping[str, str]] = {}


class LocalSecrets:
    """Implements the engine's `Secrets`. Raises `BadSettings` if a variable is not valid."""

    def __init__(self, bundles: BundleStore, environment: Mapping[str, str] = os.environ) -> None:
        self._bundles = bundles
        self._mcp = McpSecrets(bundles, environment)
        self._environment = {name: value for name, value in environment.items() if name.startswith("PROVIDER_")}
        self._in_force: InForce | None = None
        self._ambiguous: frozenset[str] = frozenset()
        self._by_key: dict[str, Mapping[str, str]] = {}
        #: providers of which at least one credential has variables
        self._local_providers: frozenset[str] = frozenset()

    def open(self, tenant_id: TenantId, key: str, sealed: str | None) -> Mapping[str, str]:
        if ":" in key:
            # The name of a provider's credential has no colon.
            return self._mcp.open(key, sealed)
        in_force = self._bundles.in_force
        if in_force is not self._in_force:
            self._in_force = in_force
            self._by_key = {}
            self._ambiguous = self._ambiguous_keys()
            self._local_providers = frozenset(
                provider_id_of(key) for key in self._keys() if self._from_environment(key)
            )
        credentials = self._by_key.get(key)
        if credentials is None:
            credentials = self._by_key[key] = self._from_environment(key)
        if credentials or provider_id_of(key) in self._local_providers:
            return credentials
        return (in_force.credentials.of(key) if in_force is not None else None) or _NO_CREDENTIALS

    def _keys(self) -> Iterator[str]:
        """Yields the names of the bundle's credentials (`credential_key`)."""
        for provider in () if self._in_force is None else self._in_force.snapshot.providers.values():
            yield credential_key(provider.id, DEFAULT_CREDENTIAL)
            for entry in provider.credentials:
                yield credential_key(provider.id, entry.label)

    def _ambiguous_keys(self) -> frozenset[str]:
        """Returns the names of the bundle's credentials that have the same variables as another one. Logs them if their
        variables are set."""
        by_name: dict[str, set[str]] = defaultdict(set)
        for key in self._keys():
            by_name[environment_name(key)].add(key)
        ambiguous = [keys for keys in by_name.values() if len(keys) > 1]
        for keys in ambiguous:
            if self._variables(next(iter(keys))):
                log.warning("provider_credentials.ambiguous_variables", providers=sorted(keys))
        return frozenset().union(*ambiguous)

    def _from_environment(self, key: str) -> Mapping[str, str]:
        return _NO_CREDENTIALS if key in self._ambiguous else self._variables(key)

    def _variables(self, key: str) -> Mapping[str, str]:
        prefix = f"PROVIDER_{environment_name(key)}_"
        return {
            field: value
            for name, value in self._environment.items()
            if name.startswith(prefix) and value and (field := name.removeprefix(prefix).lower()) in _FIELDS
        }
