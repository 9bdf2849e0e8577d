"""What a host lays over an organization's records before they are compiled: an outpost's own overrides (reference 1,
What the service does, 7). The platform lays nothing over them."""

from collections.abc import Mapping
from typing import Final

import msgspec

#: Stands for every model in `Overrides.disabled`.
EVERY_MODEL: Final = "*"


class Overrides(msgspec.Struct, frozen=True, kw_only=True):
    """`disabled`: ids of providers that do not answer for a model, by its bare id, `provider/model-id`, or `*`.
    `routes`: the entry of the catalog, as `provider/model-id`, that answers where a caller names another."""

    disabled: Mapping[str, frozenset[str]] = {}
    routes: Mapping[str, str] = {}

    def disables(self, provider: str, model_id: str) -> bool:
        names = (EVERY_MODEL, model_id, f"{provider}/{model_id}")
        return any(provider in self.disabled.get(name, ()) for name in names)
