"""Overrides of an organization's records by the operator of an outpost (docs/outposts.md, "Operators' calls"). They are
applied when the records are compiled. The platform has no overrides."""

from collections.abc import Mapping
from typing import Final

import msgspec

#: Key of every model in `Overrides.disabled`.
EVERY_MODEL: Final = "*"


class Overrides(msgspec.Struct, frozen=True, kw_only=True):
    """Overrides of an outpost. `disabled` maps a model to the ids of the providers that are not used for it. The model
    is a bare id, `provider/model-id`, or `*` for every model. `routes` maps the name of a model in a request to the
    catalog entry that is used for it, as `provider/model-id`."""

    disabled: Mapping[str, frozenset[str]] = {}
    routes: Mapping[str, str] = {}

    def disables(self, provider: str, model_id: str) -> bool:
        names = (EVERY_MODEL, model_id, f"{provider}/{model_id}")
        return any(provider in self.disabled.get(name, ()) for name in names)
