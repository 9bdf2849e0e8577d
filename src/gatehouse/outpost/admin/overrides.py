"""The operator's overrides of the policy: the kill switch, providers that are disabled for a model, and models that are
routed to another catalog entry (docs/outposts.md, "Operators' calls")."""

from collections.abc import Mapping
from typing import Annotated, Final

import structlog
from fastapi import APIRouter
from pydantic import Field, StrictBool

from gatehouse.foundation.clock import iso
from gatehouse.foundation.http.bodies import Body, ResponseBody
from gatehouse.outpost.admin.access import AuthorizedHost
from gatehouse.outpost.admin.recording import Recorder
from gatehouse.outpost.admin.versions import Changing, version_of
from gatehouse.outpost.host import OutpostHost

router = APIRouter(tags=["Overrides"])
log = structlog.get_logger(__name__)

_DISABLED: Final = [version_of(lambda state: state.overrides.disabled)]
_ROUTES: Final = [version_of(lambda state: state.overrides.routes)]

#: Maximum length of the list of models in an audit record.
_MAX_RECORDED_CHARACTERS: Final = 300

Name = Annotated[str, Field(min_length=1, max_length=300)]
#: `provider/model-id`
Entry = Annotated[str, Field(pattern="^[^/]+/.+$", max_length=300)]


class KillSwitch(Body):
    active: StrictBool


class KillSwitchState(ResponseBody):
    active: bool
    since: Annotated[str | None, Field(description="Time at which the switch was engaged at this outpost.")]
    engaged_by: Annotated[str | None, Field(description="Id of the peer that engaged the switch; null if no peer did.")]


Disabled = Annotated[
    dict[Name, Annotated[list[Name], Field(max_length=200)]],
    Field(
        max_length=1_000,
        description="Disabled providers by model. A key is a model's id, `provider/model-id`, or `*` for all models.",
        examples=[{"gpt-4o": ["azure"], "*": ["openai"]}],
    ),
]
Routes = Annotated[
    dict[Name, Entry],
    Field(
        max_length=1_000,
        description="For a model that a caller names, the catalog's entry that is used: `provider/model-id`.",
        examples=[{"gpt-4o": "azure/gpt-4o"}],
    ),
]


class ProviderOverrides(Body):
    """Replaces all provider overrides."""

    disabled: Disabled


class ProviderOverridesState(ResponseBody):
    disabled: Disabled
    unknown: Annotated[
        list[str],
        Field(description="Providers that the active policy does not contain: disabling them has no effect."),
    ]


class RoutingOverrides(Body):
    """Replaces all routing overrides."""

    routes: Routes


class RoutingState(ResponseBody):
    routes: dict[str, str]
    unknown: Annotated[
        list[str], Field(description="Targets that the active policy does not contain: 503 `override_error`.")
    ]


@router.post("/admin/api/override/kill-switch", response_model=KillSwitchState)
async def set_kill_switch(host: AuthorizedHost, recorder: Recorder, body: KillSwitch) -> KillSwitchState:
    """Engages or releases the outpost's kill switch. While it is engaged, every request that arrives after this
    response is rejected."""
    if await host.state.switch(active=body.active):
        log.warning("outpost.kill_switch", active=body.active)
    host.peers.notify()
    await recorder.record("kill_switch", active=body.active)
    return kill_switch(host)


@router.get("/admin/api/override/providers", response_model=ProviderOverridesState, dependencies=_DISABLED)
async def read_provider_overrides(host: AuthorizedHost) -> ProviderOverridesState:
    disabled = host.state.current.overrides.disabled
    in_force = host.bundles.in_force
    known_providers = in_force.snapshot.providers if in_force is not None else {}
    return ProviderOverridesState(
        disabled={model: sorted(providers) for model, providers in sorted(disabled.items())},
        unknown=sorted(
            {provider for providers in disabled.values() for provider in providers if provider not in known_providers}
        ),
    )


@router.put("/admin/api/override/providers", response_model=ProviderOverridesState, dependencies=_DISABLED)
async def set_provider_overrides(
    host: AuthorizedHost, change: Changing, recorder: Recorder, body: ProviderOverrides
) -> ProviderOverridesState:
    """Replaces the provider overrides. They apply to every request whose provider call has not begun when this response
    is sent. Requests for a model whose providers are all disabled are refused with 503
    `providers_disabled`."""
    await host.override(disabled=without_empty(body.disabled))
    await recorder.record("provider_overrides", **_summary(without_empty(body.disabled)))
    return await read_provider_overrides(host)


@router.get("/admin/api/override/routing", response_model=RoutingState, dependencies=_ROUTES)
async def read_routing_overrides(host: AuthorizedHost) -> RoutingState:
    routes = dict(sorted(host.state.current.overrides.routes.items()))
    in_force = host.bundles.in_force
    models = in_force.snapshot.models if in_force is not None else {}
    return RoutingState(routes=routes, unknown=sorted({target for target in routes.values() if target not in models}))


@router.put("/admin/api/override/routing", response_model=RoutingState, dependencies=_ROUTES)
async def set_routing_overrides(
    host: AuthorizedHost, change: Changing, recorder: Recorder, body: RoutingOverrides
) -> RoutingState:
    await host.override(routes=body.routes)
    await recorder.record("routing_overrides", **_summary(body.routes))
    return await read_routing_overrides(host)


def _summary(overrides: Mapping[str, object]) -> dict[str, str | int]:
    """Returns the details of an audit record: the number of overrides, and the names of the first models."""
    return {"count": len(overrides), "models": ", ".join(sorted(overrides))[:_MAX_RECORDED_CHARACTERS]}


def without_empty(disabled: dict[str, list[str]]) -> dict[str, frozenset[str]]:
    """Returns the overrides in the form of the policy, without models that have no disabled provider."""
    return {model: frozenset(providers) for model, providers in disabled.items() if providers}


def kill_switch(host: OutpostHost) -> KillSwitchState:
    since = host.state.current.stopped_at
    return KillSwitchState(
        active=host.state.stopped, since=None if since is None else iso(since), engaged_by=host.state.stopped_by
    )
