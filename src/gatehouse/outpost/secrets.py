"""Providers' credentials at the outpost: from its environment (decisions 9).

`PROVIDER_<ID>_<FIELD>` is the credential `<field>` of the provider with that id; what is no letter or digit in the id
is an underscore: `PROVIDER_OPENAI_API_KEY` is the `api_key` of `openai`.
"""

import os
import re
from collections.abc import Mapping
from typing import Final

from gatehouse.foundation.identity import TenantId

_OTHER: Final = re.compile("[^A-Z0-9]")


class LocalSecrets:
    """The engine's `Secrets`."""

    def __init__(self, environment: Mapping[str, str] = os.environ) -> None:
        self._environment = {name: value for name, value in environment.items() if name.startswith("PROVIDER_")}
        self._found: dict[str, Mapping[str, str]] = {}

    def open(self, tenant_id: TenantId, provider_id: str, sealed: str | None) -> Mapping[str, str]:
        found = self._found.get(provider_id)
        if found is None:
            found = self._found[provider_id] = self._of(provider_id)
        return found

    def _of(self, provider_id: str) -> Mapping[str, str]:
        prefix = f"PROVIDER_{_OTHER.sub('_', provider_id.upper())}_"
        return {
            name.removeprefix(prefix).lower(): value
            for name, value in self._environment.items()
            if name.startswith(prefix) and value
        }
