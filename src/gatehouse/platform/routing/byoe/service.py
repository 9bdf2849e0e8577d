"""Creates, changes and deletes byoe endpoints."""

from collections.abc import Sequence
from typing import Any, Final

from gatehouse.engine.providers import KINDS
from gatehouse.engine.providers.credentials import read_credentials
from gatehouse.foundation.clock import utc_now
from gatehouse.foundation.egress.guard import EgressGuard
from gatehouse.foundation.secrets.sealing import Sealer
from gatehouse.platform.changes.change import Change
from gatehouse.platform.routing.byoe.schemas import ByoeModel, ByoeUpdate, NewByoe
from gatehouse.platform.routing.model_catalog.service import apply, new_row
from gatehouse.platform.routing.model_catalog.table import models_of
from gatehouse.platform.routing.providers import service as providers
from gatehouse.platform.routing.providers.available_presets import changed_preset, find_preset
from gatehouse.platform.routing.providers.errors import ProviderExists, ProviderNotFound, bad_field
from gatehouse.platform.routing.providers.kinds import RESERVED_SLUGS
from gatehouse.platform.routing.providers.schemas import Provider
from gatehouse.platform.routing.providers.table import ModelCount, ProviderRow, credentials_of, model_counts

KIND: Final = "byoe"
#: Kinds of an organization's own endpoints, created by byoe or by setting credentials.
DELETABLE_KINDS: Final = frozenset({KIND, "openai_compatible"})


async def create(change: Change, sealer: Sealer, new: NewByoe, guard: EgressGuard) -> Provider:
    """Create the provider and its models. Raises `ProviderExists`, `ProviderIdAmbiguous`, `TooManyProviders`, and
    `Unprocessable` for a reserved id or a URL that may not be called."""
    if new.id in RESERVED_SLUGS:
        raise bad_field("id", f"{new.id!r} is reserved")
    config: dict[str, Any] = {
        "base_url": providers.provider_url("base_url", new.base_url, await providers.addresses_of(change, guard)),
        "format": new.format,
        "timeout_ms": new.timeout_ms,
    }
    if new.responses_api:
        config["responses_api"] = True
    row = await providers.insert_provider(change, new.id, name=new.name, kind=KIND, config=config)
    if row is None:
        raise ProviderExists
    await _set_key(change, sealer, row, new.api_key)
    await _set_models(change, row.id, new.models)
    change.record("provider.created", "provider", row.id, kind=KIND, models=_ids(new.models), **config)
    providers.recompile_policy(change)
    return await _shown(change, row)


async def update(change: Change, sealer: Sealer, row: ProviderRow, body: ByoeUpdate, guard: EgressGuard) -> Provider:
    """Change the provider. Raises `ProviderNotFound` for another kind, `TooManyCredentials`, and `Unprocessable` for a
    URL that may not be called, or for a URL of another host without an `api_key`."""
    if row.kind != KIND:
        raise ProviderNotFound
    changed = {
        name: value
        for name in ("base_url", "format", "timeout_ms", "max_retries", "responses_api")
        if (value := body.configured(name)) is not None
    }
    if "base_url" in changed:
        addresses = await providers.addresses_of(change, guard)
        changed["base_url"] = providers.provider_url("base_url", changed["base_url"], addresses)
        keeps_key = row.sealed_credentials is not None and "api_key" not in body.model_fields_set
        if keeps_key and providers.origin(changed["base_url"]) != providers.origin(row.config["base_url"]):
            # An administrator must not obtain the stored key by setting the URL to a host of their own.
            raise bad_field("api_key", "must be sent with a base_url of another host: the stored key goes nowhere else")
        other_host = providers.origin(changed["base_url"]) != providers.origin(row.config["base_url"])
        if other_host and await credentials_of(change.session, row.id):
            raise bad_field("base_url", "names another host, to which the endpoint's other credentials would be sent")
    changed |= await _changed_quirks(change, row, body, changed.get("base_url"))
    if body.name is not None:
        row.name = body.name
    row.config = {**row.config, **changed}
    if "api_key" in body.model_fields_set:
        await _set_key(change, sealer, row, body.api_key)
    if changed.keys() & {"base_url", "format"} or "api_key" in body.model_fields_set:
        providers.forget_health(change, row)
    details = {**changed, "fields": sorted(body.model_fields_set)}
    if body.models is not None:
        await _set_models(change, row.id, body.models)
        details["models"] = _ids(body.models)
    row.updated_at = utc_now()
    change.record("provider.updated", "provider", row.id, **details)
    providers.recompile_policy(change)
    return await _shown(change, row)


async def _changed_quirks(change: Change, row: ProviderRow, body: ByoeUpdate, base_url: str | None) -> dict[str, Any]:
    """Return the preset and the quirks that an update changes. Raises `Unprocessable` for an unknown preset, and for a
    preset of another kind."""
    sent = {} if body.config is None else body.config.sent()
    if "preset" in sent and sent["preset"] is None:
        changed: dict[str, Any] = {"preset": None}
    else:
        entry = await find_preset(change.session, {"preset": sent.get("preset"), "base_url": base_url}, KIND)
        changed = dict(changed_preset(row.config, base_url, entry))
    if sent.get("quirks") is not None:
        changed["quirks"] = sent["quirks"].record.own
    return changed


async def delete_own(change: Change, row: ProviderRow) -> None:
    """Remove an organization's own endpoint. Raises `ProviderNotFound` for another kind."""
    if row.kind not in DELETABLE_KINDS:
        raise ProviderNotFound
    await delete(change, row)


async def delete(change: Change, row: ProviderRow) -> None:
    """Remove the provider with its credentials; its models stay in the catalog, inactive."""
    for model in await models_of(change.session, row.id):
        apply(model, {"is_active": False})
    if row.unhealthy:
        change.touch("provider_health", change.tenant_id)
    await change.session.delete(row)
    change.record("provider.deleted", "provider", row.id, kind=row.kind)
    providers.recompile_policy(change)


async def _set_models(change: Change, provider_id: str, models: Sequence[ByoeModel]) -> None:
    """Make `models` the provider's active entries of the catalog, and deactivate all others.

    Existing entries are reused, even those of a deleted endpoint with the same id. An engaged kill switch stays
    engaged.
    """
    existing = {row.model_id: row for row in await models_of(change.session, provider_id)}
    for model in models:
        values = {
            "display_name": model.display_name,
            "is_active": True,
            "context_window": model.context_window,
            "cost_per_input_token": model.input_cost_per_1k.scaleb(-3),
            "cost_per_output_token": model.output_cost_per_1k.scaleb(-3),
        }
        if model.max_output_tokens is not None:
            values["max_output_tokens"] = model.max_output_tokens
        if model.capabilities is not None:
            sent = model.capabilities.model_dump(exclude={"max_context_window"})
            values["capabilities"] = {name: value for name, value in sent.items() if value is not None}
        row = existing.pop(model.model_id, None)
        if row is None:
            change.session.add(new_row(change, provider_id, model.model_id, values))
        else:
            apply(row, values)
    for row in existing.values():
        apply(row, {"is_active": False})


async def _set_key(change: Change, sealer: Sealer, row: ProviderRow, api_key: str | None) -> None:
    credentials = read_credentials(KINDS[KIND], {} if api_key is None else {"api_key": api_key})
    await providers.set_default_credential(change, sealer, row, credentials.secret)
    row.credentials_updated_at = utc_now()


async def _shown(change: Change, row: ProviderRow) -> Provider:
    await change.session.flush()
    await change.session.refresh(row, ["file_preset"])
    return providers.shown(row, (await model_counts(change.session)).get(row.id, ModelCount()))


def _ids(models: Sequence[ByoeModel]) -> list[str]:
    return [model.model_id for model in models]
