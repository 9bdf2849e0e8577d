"""Presets and models from files of `gatehouse prices update -f`, which are stored for each organization by vendor."""

from collections.abc import Sequence
from typing import Any, Final

import msgspec
from sqlalchemy import select, text
from sqlalchemy.ext.asyncio import AsyncSession

from gatehouse.foundation.errors import NotFound
from gatehouse.foundation.http.bodies import Body
from gatehouse.platform.changes.change import Change
from gatehouse.platform.routing.model_catalog import known_models
from gatehouse.platform.routing.model_catalog.known_models import KnownModel, KnownModels, PricedByFile
from gatehouse.platform.routing.providers.available_presets import stored_preset
from gatehouse.platform.routing.providers.presets import PRESETS, Preset
from gatehouse.platform.routing.providers.service import recompile_policy
from gatehouse.platform.routing.providers.table import VendorRow, all_providers

# A preset of the file replaces the stored one. A model replaces the stored one with its id, and other models stay.
_STORE: Final = text(
    "INSERT INTO vendors AS v (tenant_id, id, preset, models)"
    " VALUES (:tenant, :id, CAST(:preset AS jsonb), CAST(:models AS jsonb))"
    " ON CONFLICT (tenant_id, id) DO UPDATE SET"
    " preset = COALESCE(EXCLUDED.preset, v.preset), models = v.models || EXCLUDED.models"
)


async def load_known(session: AsyncSession) -> KnownModels:
    """Return the known models of the session's organization: those of this version, and those of its files. A field
    that a file omits has the value of this version."""
    rows = (await session.scalars(select(VendorRow).order_by(VendorRow.id))).all()
    own = known_models.built_in()
    models, presets = dict(own.models), {}
    for row in rows:
        if row.preset is not None:
            presets[row.id] = stored_preset(row.preset)
        for model_id, fields in row.models.items():
            models[row.id, model_id] = _model(fields, own.find(row.id, model_id))
    return KnownModels(models, presets) if rows else own


class UnknownVendors(NotFound):
    """The organization has no presets with these ids: 404."""

    @classmethod
    def of(cls, vendors: Sequence[str]) -> "UnknownVendors":
        return cls(
            f"The file has models of {', '.join(vendors)}, but the organization has no such preset, and the file has"
            " none. Add a table [presets.NAME] for each of them."
        )


async def with_earlier_presets(session: AsyncSession, file: KnownModels) -> KnownModels:
    """Return a file with those presets of earlier files to which its models belong. Raises `UnknownVendors`."""
    if not file.earlier_vendors:
        return file
    query = select(VendorRow).where(VendorRow.id.in_(file.earlier_vendors), VendorRow.preset.is_not(None))
    earlier = {row.id: stored_preset(row.preset or {}) for row in await session.scalars(query)}
    if missing := [vendor for vendor in file.earlier_vendors if vendor not in earlier]:
        raise UnknownVendors.of(missing)
    return KnownModels(file.models, {**earlier, **file.presets})


async def remove_vendor(change: Change, vendor: str) -> bool:
    """Remove the stored preset and models of a vendor. Return whether there were any. A preset of this version with the
    same id applies again. Entries of the catalog keep their values."""
    row = await change.session.get(VendorRow, (change.tenant_id, vendor))
    if row is None:
        return False
    await change.session.delete(row)
    change.record("provider.presets_updated", "provider", presets=[vendor], providers=[], removed=True)
    recompile_policy(change)
    return True


async def store_file(change: Change, file: KnownModels) -> dict[str, bool]:
    """Store the presets and models of a file. Return the ids of the presets that are new or changed, and whether each
    replaces another preset. A provider without a preset is assigned to the preset with its kind and address."""
    session = change.session
    rows = (await session.scalars(select(VendorRow))).all()
    stored = {row.id: row.preset for row in rows}
    stored_models = {row.id: row.models for row in rows}
    vendors_of_models: list[str] = []
    presets = {preset_id: _as_json(preset) for preset_id, preset in file.presets.items()}
    for vendor in dict.fromkeys([*presets, *(name for name, _ in file.models)]):
        models = {model_id: _as_json(model) for (name, model_id), model in file.models.items() if name == vendor}
        if {**stored_models.get(vendor, {}), **models} != stored_models.get(vendor, {}):
            vendors_of_models.append(vendor)
        preset = None if vendor not in presets else msgspec.json.encode(presets[vendor]).decode()
        values = {"preset": preset, "models": msgspec.json.encode(models).decode()}
        await session.execute(_STORE, {"tenant": change.tenant_id, "id": vendor, **values})
    changed = {
        preset_id: stored.get(preset_id) is not None or preset_id in PRESETS
        for preset_id, preset in presets.items()
        if stored.get(preset_id) != preset
    }
    assigned = await _assign_providers(change, file)
    if changed or assigned or vendors_of_models:
        change.record(
            "provider.presets_updated", "provider", presets=sorted(changed), providers=sorted(assigned),
            models_of=sorted(vendors_of_models),
        )  # fmt: skip
    if changed or assigned:
        recompile_policy(change)
    return changed


async def _assign_providers(change: Change, file: KnownModels) -> list[str]:
    """Assign providers without a preset to those of the file. Return the ids of the providers."""
    addresses: dict[tuple[str, str], str] = {}
    for preset_id, preset in file.presets.items():
        for entry in (preset, PRESETS.get(preset_id, preset)):
            addresses[_address(entry)] = preset_id
    assigned = []
    for row in await all_providers(change.session):
        assignable = addresses.get((row.kind, row.config.get("base_url") or ""))
        if assignable is not None and row.config.get("preset") is None:
            row.config = {**row.config, "preset": assignable}
            assigned.append(row.id)
    return assigned


def _address(preset: Preset) -> tuple[str, str]:
    return preset.kind, preset.base_url


def _model(fields: dict[str, Any], base: KnownModel | None) -> KnownModel:
    """Return the model of a file. `base` is the model in the data of this version, or None."""
    model_type = KnownModel if fields.get("usd_per_million_tokens") is None else PricedByFile
    of_version = {} if base is None else _as_json(base)
    capabilities = {**of_version.get("capabilities", {}), **fields.get("capabilities", {})}
    return model_type.model_validate({**of_version, **fields, "capabilities": capabilities}, strict=False)


def _as_json(entry: Body) -> dict[str, Any]:
    return entry.model_dump(mode="json", exclude_unset=True)
