"""Bodies of the kill switch endpoints (docs/kill-switch.md)."""

from datetime import datetime
from typing import Annotated, Literal
from uuid import UUID

from pydantic import Field

from gatehouse.foundation.http.bodies import Body, ResponseBody

Reason = Literal["maintenance", "cost_runaway", "security_event", "other"]


class Disable(Body):
    reason: Annotated[Reason, Field(examples=["cost_runaway"])]


class ModelState(ResponseBody):
    id: UUID
    provider: Annotated[str, Field(examples=["sandbox"])]
    model_id: Annotated[str, Field(examples=["echo"])]
    display_name: str | None
    is_active: Annotated[bool, Field(description="The catalog's flag, independent of the kill switch.")]
    kill_switch_active: Annotated[bool, Field(description="Whether its own switch or its provider's is engaged.")]
    kill_switch_disabled_at: Annotated[datetime | None, Field(description="Since when it is off.")]
    disabled_reason: Reason | None


class ProviderSummary(ResponseBody):
    provider: Annotated[str, Field(examples=["sandbox"])]
    total_models: int
    kill_switch_disabled_count: int
    kill_switch_active: Annotated[bool, Field(description="Whether the provider or any of its models is switched off.")]
    provider_disabled_at: Annotated[
        datetime | None, Field(description="Since when the provider as a whole is off, later models included.")
    ]
    provider_disabled_reason: Reason | None
    models: list[ModelState]


class HowFar(ResponseBody):
    """The workers that have confirmed a change, and those that have not."""

    confirmed: Annotated[int, Field(description="Workers that apply it.", examples=[4])]
    total: Annotated[int, Field(description="Live workers.", examples=[4])]
    pending: Annotated[list[str], Field(description="Names of workers that may not apply it yet.")]
    elapsed_ms: Annotated[float, Field(description="How long the call waited for them.", examples=[7.2])]


class SwitchedModel(ModelState):
    propagation: HowFar


class SwitchedProvider(ProviderSummary):
    propagation: HowFar


class Worker(ResponseBody):
    name: Annotated[str, Field(examples=["gateway-7-1204"])]
    revision: Annotated[int, Field(description="The last revision that it has confirmed.")]
    seen_at: datetime


class ReachedOutpost(ResponseBody):
    outpost_id: UUID
    confirmed_at: Annotated[datetime | None, Field(description="When the outpost confirmed the change.")]
    elapsed_ms: Annotated[float | None, Field(description="From the change to the confirmation.", examples=[120.4])]


class ConnectedOutpost(ResponseBody):
    outpost_id: UUID
    version: Annotated[int, Field(description="Version of the policy in force at the outpost; 0 without one.")]
    seen_at: datetime
    certificate_serial: str
    certificate_ends: datetime


class RecentChange(ResponseBody):
    revision: int
    at: datetime
    topic: Annotated[str, Field(description="The kind of change.", examples=["switch"])]
    targets: Annotated[list[str], Field(description="`provider/model-id` of models, otherwise ids; the first 100.")]
    target_count: int
    confirmed: Annotated[int, Field(description="Live workers that apply it now.")]
    total: int
    pending: list[str]
    outposts: Annotated[
        list[ReachedOutpost], Field(description="Outposts seen in the last day. Calls do not wait for them.")
    ]


class PropagationReport(ResponseBody):
    nodes: list[Worker]
    outposts: Annotated[list[ConnectedOutpost], Field(description="The 200 that were seen last.")]
    changes: Annotated[list[RecentChange], Field(description="Newest first.")]
