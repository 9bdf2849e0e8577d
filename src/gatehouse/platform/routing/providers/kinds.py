"""The kind of a provider whose credentials are set, and the names that a new provider can have."""

import re
from collections.abc import Mapping
from typing import Any, Final

from gatehouse.engine.providers import KINDS, ProviderKind
from gatehouse.platform.routing.fields import SLUG
from gatehouse.platform.routing.providers.errors import ProviderNotFound, bad_field
from gatehouse.platform.routing.providers.presets import Preset
from gatehouse.platform.routing.providers.table import ProviderRow

OPENAI_COMPATIBLE: Final = "openai_compatible"
BYOE: Final = "byoe"
#: Names of kinds are not allowed for own endpoints. `config` would make `PATCH /providers/byoe/config` ambiguous.
RESERVED_SLUGS: Final = frozenset({*KINDS, "config"} - {BYOE})


def kind_of(
    row: ProviderRow | None, provider_id: str, body: Mapping[str, Any], *, preset: Preset | None, sandbox: bool
) -> ProviderKind:
    """Return the kind of the existing provider, or of the one to create. Raises `ProviderNotFound`, and `Unprocessable`
    for a `kind` that is unknown or differs from the provider's kind."""
    requested = body.get("kind")
    if row is not None:
        if requested not in (None, row.kind):
            raise bad_field("kind", f"the provider {row.id!r} is of kind {row.kind}; remove it, or use another name")
        kind = KINDS.get(row.kind)
    elif preset is not None:
        if requested not in (None, preset.kind):
            raise bad_field("kind", f"the preset is of kind {preset.kind}; leave the field out")
        kind = KINDS[preset.kind] if _is_free(provider_id) else None
    elif requested is not None and (requested != provider_id or requested not in KINDS):
        return _kind_of_another(provider_id, requested, sandbox=sandbox)
    elif provider_id in KINDS:
        kind = None if provider_id == BYOE or (provider_id == "sandbox" and not sandbox) else KINDS[provider_id]
    else:
        valid = body.get("base_url") and re.fullmatch(SLUG, provider_id) and provider_id not in RESERVED_SLUGS
        kind = KINDS[OPENAI_COMPATIBLE] if valid else None
        if kind is None and re.fullmatch(SLUG, provider_id) and provider_id not in RESERVED_SLUGS:
            raise ProviderNotFound(
                f"Provider not found. {provider_id!r} is no built-in kind; with a kind this call makes a provider of"
                " that kind, and with a base_url an OpenAI-compatible one."
            )
    if kind is None:
        raise ProviderNotFound
    return kind


def _is_free(provider_id: str) -> bool:
    """Return whether a provider can have this name, which is not the name of a kind."""
    return re.fullmatch(SLUG, provider_id) is not None and provider_id not in RESERVED_SLUGS | {BYOE}


def _kind_of_another(provider_id: str, kind: str, *, sandbox: bool) -> ProviderKind:
    """Return the kind of a provider whose name differs from the name of its kind. Raises `ProviderNotFound` for a name
    that it cannot have, and `Unprocessable` for the kind."""
    kinds = KINDS.keys() - {BYOE} - (set() if sandbox else {"sandbox"})
    if kind not in kinds:
        raise bad_field("kind", f"must be one of {', '.join(sorted(kinds))}")
    if not _is_free(provider_id):
        raise ProviderNotFound(
            "Provider not found. The name of a new provider has letters, digits and dashes, begins with no dash, and is"
            " not that of another kind."
        )
    return KINDS[kind]
