"""The kill switch endpoints (docs/kill-switch.md). Releasing a switch needs a second factor if one is required
(docs/mfa.md). Engaging a switch never needs one."""

from typing import Annotated, Any
from uuid import UUID

from fastapi import APIRouter, Depends, Query, Response

from gatehouse.foundation.errors import Unprocessable
from gatehouse.foundation.http.envelopes import ParameterFault
from gatehouse.foundation.http.lists import TOTAL_COUNT_HEADER, OptionalWindow, optional_window, search_parameter
from gatehouse.platform.request.callers import (
    RESPONSES,
    Admin,
    AdminReader,
    AdminStepUp,
)
from gatehouse.platform.request.injected import Changing, Session
from gatehouse.platform.request.ports import TheHost
from gatehouse.platform.routing.kill_switch import service
from gatehouse.platform.routing.kill_switch.schemas import (
    DisableRequest,
    ModelState,
    PropagationReport,
    ProviderSummary,
    Reason,
    SwitchedModel,
    SwitchedProvider,
)

router = APIRouter(prefix="/api/v1/admin/kill-switch", tags=["Kill switch"], responses=RESPONSES)

Search = Annotated[str | None, search_parameter("Part of the provider's id or name, or of the model's id or name.")]
Window = Annotated[OptionalWindow, Depends(optional_window(maximum=200))]

#: The body is optional in Python only, so that the error of a missing body identifies `reason`.
_BODY: dict[str, Any] = {"requestBody": {"required": True}}


def _reason(body: DisableRequest | None) -> Reason:
    if body is None:
        raise Unprocessable(faults=[ParameterFault(("body", "reason"), "Field required", kind="missing")])
    return body.reason


@router.get("/providers", response_model=list[ProviderSummary])
async def list_kill_switches(
    caller: AdminReader,
    session: Session,
    window: Window,
    response: Response,
    *,
    search: Search = None,
    kill_switch_active: Annotated[
        bool | None, Query(description="Only models that a switch stops, or only the others.")
    ] = None,
) -> object:
    """Lists models and their switches by provider. `limit` and `offset` count models; a provider without models is
    treated as one. If a provider's models are on several pages, each page has the provider with the models of this
    page. The header `X-Total-Count` has the number of all matching models."""
    summaries, total = await service.summaries(session, window, search=search, stopped=kill_switch_active)
    response.headers[TOTAL_COUNT_HEADER] = str(total)
    return summaries


@router.post("/providers/{provider}/disable", response_model=SwitchedProvider, openapi_extra=_BODY)
async def disable_provider_models(
    caller: Admin, provider: str, change: Changing, host: TheHost, body: DisableRequest | None = None
) -> object:
    """Switches off the provider: all of its models, including those added later, until it is released.

    After the response, only the workers under `pending` may still send new requests to them. Requests in flight finish.
    """
    return await service.switch_provider(change, host, provider, _reason(body))


@router.post("/providers/{provider}/enable", response_model=SwitchedProvider)
async def enable_provider_models(caller: AdminStepUp, provider: str, change: Changing, host: TheHost) -> object:
    """Releases the provider, and switches all of its models on again."""
    return await service.switch_provider(change, host, provider, None)


@router.get("/models/{model_config_id}", response_model=ModelState)
async def read_kill_switch(caller: AdminReader, model_config_id: UUID, session: Session) -> object:
    """Returns one model's state."""
    return await service.model(session, model_config_id)


@router.post("/models/{model_config_id}/disable", response_model=SwitchedModel, openapi_extra=_BODY)
async def disable_model(
    caller: Admin, model_config_id: UUID, change: Changing, host: TheHost, body: DisableRequest | None = None
) -> object:
    """Switches one model off. The provider's other models are not affected."""
    return await service.switch_model(change, host, model_config_id, _reason(body))


@router.post(
    "/models/{model_config_id}/enable",
    response_model=SwitchedModel,
    responses={409: {"description": "The provider is switched off as a whole."}},
)
async def enable_model(caller: AdminStepUp, model_config_id: UUID, change: Changing, host: TheHost) -> object:
    """Switches one model on again. 409 while its provider is switched off as a whole."""
    return await service.switch_model(change, host, model_config_id, None)


@router.get("/propagation", response_model=PropagationReport)
async def show_propagation(
    caller: AdminReader,
    session: Session,
    host: TheHost,
    limit: Annotated[int, Query(ge=1, le=200, description="Maximum number of changes.")] = 50,
) -> object:
    """Lists the last changes that revoked or restored a right (kill switches, keys, clients, users, sessions), with
    their times and the workers that have not confirmed them."""
    return await service.report(session, host, caller, limit)
