"""Bodies of the kill switch endpoints (docs/kill-switch.md)."""

from datetime import datetime
from typing import Annotated, Literal
from uuid import UUID

from pydantic import Field

from gatehouse.foundation.http.bodies import Body, ResponseBody

Reason = Literal["maintenance", "cost_runaway", "security_event", "other"]


class DisableRequest(Body):
    reason: Annotated[Reason, Field(examples=["cost_runaway"])]


class ModelState(ResponseBody):
    id: UUID
    provider: Annotated[str, Field(examples=["sandbox"])]
    model_id: Annotated[str, Field(examples=["echo"])]
    display_name: str | None
    is_active: Annotated[bool, Field(description="The catalog's flag, independent of the kill switch.")]
    kill_switch_active: Annotated[bool, Field(description="Whether the model or its provider is switched off.")]
    kill_switch_disabled_at: Annotated[
        datetime | None, Field(description="When the model was switched off; null if it is on.")
    ]
    disabled_reason: Reason | None


class ProviderSummary(ResponseBody):
    provider: Annotated[str, Field(examples=["sandbox"])]
    total_models: Annotated[int, Field(description="All models of the provider, also those that are not in `models`.")]
    kill_switch_disabled_count: Annotated[int, Field(description="Models of the provider that are switched off.")]
    kill_switch_active: Annotated[bool, Field(description="Whether the provider or any of its models is switched off.")]
    provider_disabled_at: Annotated[
        datetime | None,
        Field(
            description="When the whole provider was switched off. This also applies to models that are added later."
            " Null if the provider is on."
        ),
    ]
    provider_disabled_reason: Reason | None
    models: list[ModelState]


class PropagationStatus(ResponseBody):
    """The workers that have confirmed a change, and those that have not."""

    confirmed: Annotated[int, Field(description="Number of workers that have confirmed the change.", examples=[4])]
    total: Annotated[int, Field(description="Number of live workers.", examples=[4])]
    pending: Annotated[list[str], Field(description="Names of the workers that have not confirmed the change.")]
    elapsed_ms: Annotated[
        float, Field(description="Milliseconds that the call waited for confirmations.", examples=[7.2])
    ]


class SwitchedModel(ModelState):
    propagation: PropagationStatus


class SwitchedProvider(ProviderSummary):
    propagation: PropagationStatus


class Worker(ResponseBody):
    name: Annotated[str, Field(examples=["gateway-7-1204"])]
    revision: Annotated[int, Field(description="The last revision that the worker has confirmed.")]
    seen_at: datetime


class OutpostPropagation(ResponseBody):
    outpost_id: UUID
    confirmed_at: Annotated[datetime | None, Field(description="When the outpost confirmed the change.")]
    elapsed_ms: Annotated[
        float | None, Field(description="Milliseconds between the change and the confirmation.", examples=[120.4])
    ]


class ConnectedOutpost(ResponseBody):
    outpost_id: UUID
    version: Annotated[int, Field(description="Version of the outpost's active policy; 0 if it has none.")]
    seen_at: datetime
    certificate_serial: str
    certificate_ends: datetime


class RecentChange(ResponseBody):
    revision: int
    at: datetime
    topic: Annotated[str, Field(description="The kind of change.", examples=["switch"])]
    targets: Annotated[
        list[str], Field(description="Changed objects: models as `provider/model-id`, others by id. At most 100.")
    ]
    target_count: int
    confirmed: Annotated[int, Field(description="Number of live workers that have confirmed the change.")]
    total: int
    pending: list[str]
    outposts: Annotated[
        list[OutpostPropagation],
        Field(description="Outposts that were seen in the last day. A change does not wait for them."),
    ]


class PropagationReport(ResponseBody):
    nodes: list[Worker]
    outposts: Annotated[list[ConnectedOutpost], Field(description="At most 200, most recently seen first.")]
    changes: Annotated[list[RecentChange], Field(description="The newest comes first.")]
