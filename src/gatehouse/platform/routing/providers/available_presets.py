"""The presets that an organization can use: those of this version, and those of its files."""

from collections.abc import Mapping
from typing import Any

from sqlalchemy import select
from sqlalchemy.ext.asyncio import AsyncSession

from gatehouse.platform.routing.providers.errors import bad_field
from gatehouse.platform.routing.providers.presets import KINDS_BY_DIALECT, PRESETS, Preset
from gatehouse.platform.routing.providers.schemas import ProviderPreset
from gatehouse.platform.routing.providers.table import VendorRow


async def presets_of(session: AsyncSession) -> dict[str, tuple[Preset, bool]]:
    """Return the presets of the session's organization by id, and whether each comes from a file."""
    query = select(VendorRow).where(VendorRow.preset.is_not(None)).order_by(VendorRow.id)
    stored = {row.id: (stored_preset(row.preset or {}), True) for row in await session.scalars(query)}
    built_in = {preset_id: (preset, False) for preset_id, preset in PRESETS.items()}
    return {**built_in, **stored}


def stored_preset(data: Mapping[str, Any]) -> Preset:
    """Return a preset of the database."""
    return Preset.model_validate(data, strict=False)


def preset_shown(preset_id: str, preset: Preset, *, from_file: bool) -> ProviderPreset:
    fields = {name: getattr(preset, name) for name in Preset.model_fields}
    return ProviderPreset(id=preset_id, kind=preset.kind, source="file" if from_file else "built_in", **fields)


def with_preset(preset: Preset, body: Mapping[str, Any]) -> tuple[dict[str, Any], dict[str, str]]:
    """Return two values: the body with the preset's name and address where the body has none, and the settings that are
    not credential fields of the provider's kind."""
    sent = {name: value for name, value in body.items() if value}
    filled = {"name": preset.name, "base_url": preset.base_url, **sent}
    if preset.dialect == "openai":
        return filled, {}
    return filled, {"base_url": filled.pop("base_url"), "format": preset.dialect}


def changed_preset(former: Mapping[str, Any], base_url: Any, entry: tuple[str, Preset] | None) -> dict[str, str | None]:
    """Return the `preset` of a provider whose base URL is set, or nothing if it stays. `entry` is the preset that the
    request names, or the one with this address. Without either, a provider that moves to another address loses its
    preset, whose quirks are those of the former host."""
    if entry is not None:
        return {"preset": entry[0]}
    moves = base_url is not None and base_url != former.get("base_url")
    return {"preset": None} if moves and former.get("preset") is not None else {}


async def find_preset(session: AsyncSession, body: Mapping[str, Any], kind: str | None) -> tuple[str, Preset] | None:
    """Return the preset that a body of credentials names, or else the one with its kind and base URL. Raises
    `Unprocessable` for an unknown preset, and for a preset of another kind than the provider's."""
    requested, base_url = body.get("preset"), str(body.get("base_url") or "").rstrip("/")
    if requested is None and not base_url:
        return None
    presets = await presets_of(session)
    if requested is None:
        kind = kind or body.get("kind") or KINDS_BY_DIALECT["openai"]
        choice = (entry for entry in presets.items() if (entry[1][0].base_url, entry[1][0].kind) == (base_url, kind))
        return next(((preset_id, preset) for preset_id, (preset, _) in choice), None)
    if requested not in presets:
        raise bad_field("preset", f"there is no preset {requested!r}; GET /api/admin/provider-presets lists them")
    preset, _ = presets[requested]
    if kind not in (None, preset.kind):
        raise bad_field("preset", f"{requested!r} is for the kind {preset.kind}; this provider is of kind {kind}")
    return requested, preset
