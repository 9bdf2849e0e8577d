"""The provider endpoints (docs/providers.md)."""

from typing import Annotated, Literal

import msgspec
from fastapi import APIRouter, Depends, Header, Path, Query, Request, Response

from gatehouse.administration.etags import READ_METHODS, TheVersions
from gatehouse.foundation.http.lists import (
    OptionalWindow,
    optional_window,
    search_parameter,
    sort_parameter,
    windowed,
)
from gatehouse.platform.request.callers import (
    RESPONSES,
    Admin,
    AdminReader,
    AdminStepUp,
    ApiReader,
)
from gatehouse.platform.request.injected import Changing, InSplitTransactions, Session
from gatehouse.platform.request.ports import TheHost
from gatehouse.platform.routing.providers import service
from gatehouse.platform.routing.providers.available_presets import preset_shown, presets_of
from gatehouse.platform.routing.providers.errors import NoSuchModel
from gatehouse.platform.routing.providers.probe import Prober
from gatehouse.platform.routing.providers.schemas import (
    ConfigUpdate,
    ConfigUpdated,
    Credentials,
    CredentialsSet,
    HealthCheckConfig,
    HealthCheckConfigured,
    HealthChecked,
    Provider,
    ProviderPresets,
    ProviderReachable,
    Providers,
    ProvidersHealth,
    ProviderUnreachable,
    Sort,
    StatusChanged,
    StatusUpdate,
)
from gatehouse.platform.routing.providers.table import (
    ModelCount,
    ProviderRow,
    all_providers,
    find_provider,
    list_query,
    model_counts,
    the_provider,
    trial_model,
)

router = APIRouter(tags=["Providers"], responses=RESPONSES)

_BASE = "/api/admin/providers"
#: Maximum timeout of a test call. It is long enough for a local model to load, and short enough for an administrator to
#: wait.
_MAX_TRIAL_TIMEOUT_MS = 30_000

Search = Annotated[str | None, search_parameter("Part of the id or the name.")]
Window = Annotated[OptionalWindow, Depends(optional_window(maximum=200))]
ProviderId = Annotated[str, Path(description="The provider's slug.", examples=["openai"])]


async def _loaded(session: Session, request: Request, versions: TheVersions, provider_id: ProviderId) -> ProviderRow:
    provider = await the_provider(session, provider_id, lock=request.method not in READ_METHODS)
    versions.about(provider, "provider_id")
    return provider


LoadedProvider = Annotated[ProviderRow, Depends(_loaded)]


async def _version(session: Session, versions: TheVersions, provider_id: ProviderId) -> None:
    """Check the version of the provider if it exists."""
    provider = await find_provider(session, provider_id, lock=True)
    if provider is not None:
        versions.about(provider, "provider_id", part="/credentials")


@router.get(_BASE, response_model=Providers)
async def list_providers(
    caller: AdminReader,
    session: Session,
    window: Window,
    response: Response,
    *,
    search: Search = None,
    enabled: Annotated[bool | None, Query(description="Only enabled, or only disabled ones.")] = None,
    sort: Annotated[Sort, sort_parameter()] = "id",
) -> Providers:
    """Lists the organization's providers, by default all of them, by id. The header `X-Total-Count` is the number of
    all matching providers, regardless of `limit` and `offset`."""
    counts = await model_counts(session)
    rows = await windowed(session, list_query(search=search, enabled=enabled, sort=sort), window, response)
    return Providers(providers=[service.shown(row, counts.get(row.id, ModelCount())) for row in rows])


@router.get("/api/admin/provider-presets", response_model=ProviderPresets)
async def list_provider_presets(caller: AdminReader, session: Session) -> ProviderPresets:
    """Lists services and servers whose kind and address are known: those of this version, and those from files of
    `gatehouse prices update -f`. To add one, set the credentials of a provider with `preset` and your key. Every
    address can be replaced by another."""
    presets = await presets_of(session)
    return ProviderPresets(
        presets=[preset_shown(name, preset, from_file=from_file) for name, (preset, from_file) in presets.items()]
    )


@router.get(_BASE + "/{provider_id}", response_model=Provider)
async def read_provider(caller: AdminReader, provider: LoadedProvider, session: Session) -> Provider:
    """Returns one provider. 404 if the organization has not configured it."""
    return service.shown(provider, (await model_counts(session)).get(provider.id, ModelCount()))


@router.put(_BASE + "/{provider_id}/credentials", response_model=CredentialsSet)
async def set_provider_credentials(
    *,
    caller: AdminStepUp,
    provider_id: ProviderId,
    body: Credentials,
    version: Annotated[None, Depends(_version)],
    change: Changing,
    host: TheHost,
    if_none_match: Annotated[
        Literal["*"] | None, Header(description="`*` adds a provider: the request is refused with 412 if it exists.")
    ] = None,
) -> CredentialsSet:
    """Replaces the provider's default credential, which is sealed and never returned. The state of the credential, and
    all other credentials, stay as they are. With `use_instance_role`, all credentials are removed.

    Adds the provider if it does not exist. If its id is the name of a kind, it is a provider of that kind. With any
    other id, a body with a `kind` adds another provider of that kind, and a body with a `base_url` adds an
    OpenAI-compatible endpoint, with or without `api_key`. With `If-None-Match: *`, the credentials of an existing
    provider are never replaced.
    """
    fields = body.model_dump(exclude_unset=True)
    return await service.set_credentials(
        change,
        host.sealer,
        provider_id,
        fields,
        must_be_new=if_none_match is not None,
        sandbox=host.settings.sandbox,
        guard=host.receivers.guard,
    )


@router.delete(_BASE + "/{provider_id}/credentials", status_code=204)
async def remove_provider_credentials(caller: AdminStepUp, provider: LoadedProvider, change: Changing) -> None:
    """Removes all credentials of a provider that needs them. Calls that start after the response cannot use it.

    The provider and its models stay, so that fallbacks and routing policies that name them remain valid. 409 for the
    sandbox and for endpoints of your own, which work without credentials.
    """
    await service.remove_credentials(change, provider)


@router.patch(_BASE + "/{provider_id}/config", response_model=ConfigUpdated)
async def update_provider_config(
    caller: Admin, provider: LoadedProvider, body: ConfigUpdate, change: Changing
) -> ConfigUpdated:
    """Changes the timeout, the retries, whether `/v1/responses` is passed through, the preset, or the quirks."""
    return await service.update_config(change, provider, body)


@router.put(_BASE + "/{provider_id}/status", response_model=StatusChanged)
async def set_provider_status(
    caller: Admin, provider: LoadedProvider, body: StatusUpdate, change: Changing
) -> StatusChanged:
    """Disables a provider, or enables it again. Calls that start after the response cannot use a disabled provider."""
    return await service.set_status(change, provider, body)


@router.post(_BASE + "/{provider_id}/health-check", response_model=HealthChecked)
async def check_provider_health(
    caller: Admin, provider_id: ProviderId, transactions: InSplitTransactions, host: TheHost
) -> HealthChecked:
    """Checks the provider now, with the same effect as a scheduled check. No model is called."""
    async with transactions.reading() as session:
        provider = await the_provider(session, provider_id)
    prober = Prober(host.outbound, host.sealer)
    outcome = await prober.check(transactions.tenant_id, provider.record, provider.checks.timeout_ms)
    async with transactions.changing() as change:
        service.store_outcome(change, await the_provider(change.session, provider_id, lock=True), outcome)
        change.record("provider.health_checked", "provider", provider_id, status=outcome.status, error=outcome.error)
    return HealthChecked(
        provider_id=provider_id,
        health_check_status=outcome.status,
        response_time_ms=outcome.latency_ms,
        checked_at=outcome.checked_at,
        error=outcome.detail,
    )


@router.put(_BASE + "/{provider_id}/health-check-config", response_model=HealthCheckConfigured)
async def configure_provider_health_check(
    caller: Admin, provider: LoadedProvider, body: HealthCheckConfig, change: Changing
) -> HealthCheckConfigured:
    """Changes the schedule of the provider's health checks, and its thresholds."""
    return service.set_checks(change, provider, body)


@router.get("/api/providers/health", response_model=ProvidersHealth)
async def read_providers_health(caller: ApiReader, session: Session) -> ProvidersHealth:
    """Lists the health of the organization's providers by id."""
    counts = await model_counts(session)
    rows = await all_providers(session)
    return ProvidersHealth(providers=[service.health_shown(row, counts.get(row.id, ModelCount())) for row in rows])


@router.post(
    "/api/admin/system/check-provider/{provider_id}",
    response_model=ProviderReachable | ProviderUnreachable,
    tags=["System"],
)
async def check_provider(
    caller: Admin,
    provider_id: ProviderId,
    transactions: InSplitTransactions,
    host: TheHost,
    model_id: Annotated[
        str | None, Query(alias="model", max_length=512, description="An active model; else the cheapest one.")
    ] = None,
) -> ProviderReachable | ProviderUnreachable:
    """Makes a minimal call to `model`, or else to the cheapest active model of the provider that no kill switch stops.

    If there is no such model, requests the provider's list of models instead. The provider bills the call.
    """
    async with transactions.reading() as session:
        provider = (await the_provider(session, provider_id)).record
        model = await trial_model(session, provider_id, model_id)
    if model is None and model_id is not None:
        raise NoSuchModel
    prober = Prober(host.outbound, host.sealer)
    timeout_ms = min(provider.config.timeout_ms, _MAX_TRIAL_TIMEOUT_MS)
    if model is None:
        outcome = await prober.check(transactions.tenant_id, provider, timeout_ms)
    else:
        outcome = await prober.try_out(transactions.tenant_id, provider, model, timeout_ms)
    tested_model_id = None if model is None else model.model_id
    async with transactions.changing() as change:
        change.record("provider.tested", "provider", provider_id, model=tested_model_id, error=outcome.error)
    fields = {"provider_id": provider_id, "model_tested": tested_model_id, **msgspec.structs.asdict(outcome)}
    if outcome.good:
        return ProviderReachable.model_validate({**fields, "status": "reachable"})
    return ProviderUnreachable.model_validate({**fields, "status": "unreachable"})
