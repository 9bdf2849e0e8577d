"""A host's overrides of an organization's records, applied when they are compiled: an outpost's own (docs/outposts.md,
"Operators' calls"). The platform has none."""

from collections.abc import Mapping
from typing import Final

import msgspec

#: Key of every model in `Overrides.disabled`.
EVERY_MODEL: Final = "*"


class Overrides(msgspec.Struct, frozen=True, kw_only=True):
    """`disabled`: ids of providers that are not used for a model, by its bare id, `provider/model-id`, or `*`.
    `routes`: the entry of the catalog, as `provider/model-id`, that is used for the model a caller names."""

    disabled: Mapping[str, frozenset[str]] = {}
    routes: Mapping[str, str] = {}

    def disables(self, provider: str, model_id: str) -> bool:
        names = (EVERY_MODEL, model_id, f"{provider}/{model_id}")
        return any(provider in self.disabled.get(name, ()) for name in names)
