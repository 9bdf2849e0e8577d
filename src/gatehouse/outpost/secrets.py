"""Providers' credentials at the outpost: from its environment (decisions 9), else from the bundle where they are sealed
to this outpost's key.

`PROVIDER_<ID>_<FIELD>` is the credential `<field>` of the provider with that id; what is no letter or digit in the id
is an underscore: `PROVIDER_OPENAI_API_KEY` is the `api_key` of `openai`. A provider with any of them has these alone:
halves of two sets of credentials fit nowhere.
"""

import os
import re
from collections.abc import Mapping
from typing import Final

from gatehouse.foundation.identity import TenantId
from gatehouse.outpost.bundle import Bundles

_OTHER: Final = re.compile("[^A-Z0-9]")
_NONE: Final[Mapping[str, str]] = {}


class LocalSecrets:
    """The engine's `Secrets`."""

    def __init__(self, bundles: Bundles, environment: Mapping[str, str] = os.environ) -> None:
        self._bundles = bundles
        self._environment = {name: value for name, value in environment.items() if name.startswith("PROVIDER_")}
        self._found: dict[str, Mapping[str, str]] = {}

    def open(self, tenant_id: TenantId, provider_id: str, sealed: str | None) -> Mapping[str, str]:
        found = self._found.get(provider_id)
        if found is None:
            found = self._found[provider_id] = self._of(provider_id)
        if found:
            return found
        held = self._bundles.in_force
        return (held.credentials.of(provider_id) if held is not None else None) or _NONE

    def _of(self, provider_id: str) -> Mapping[str, str]:
        prefix = f"PROVIDER_{_OTHER.sub('_', provider_id.upper())}_"
        return {
            name.removeprefix(prefix).lower(): value
            for name, value in self._environment.items()
            if name.startswith(prefix) and value
        }
