"""Bodies of the content filters' endpoints."""

from datetime import datetime
from typing import Annotated, Any, Literal
from uuid import UUID

from pydantic import Field, StringConstraints

from gatehouse.foundation.http.bodies import Body, Id, ResponseBody, omitted, partial
from gatehouse.policy.governance import FilterType

Name = Annotated[str, Field(min_length=1, max_length=255, pattern=r"^[^\x00-\x1f\x7f]+$", examples=["Project names"])]
Description = Annotated[str, Field(max_length=2_000)]
Scope = Literal["org", "group"]
Sort = Literal["priority", "-priority", "name", "-name", "created_at", "-created_at"]
Priority = Annotated[
    int,
    Field(
        ge=-1_000_000,
        le=1_000_000,
        description="The filter with the lowest priority is evaluated first.",
        examples=[10],
    ),
]
#: The required fields depend on the type: see `config`.
Config = Annotated[
    dict[str, Any],
    Field(
        description="`keyword_block`: `keywords`. `topic_block`: `topics`, and optionally `threshold` (default 0.5)."
        " `custom_instruction`: `instruction`.",
        examples=[{"keywords": ["Project Falcon"]}],
    ),
]


class NewContentFilter(Body):
    name: Name
    description: Description | None = None
    filter_type: Annotated[FilterType, Field(examples=["keyword_block"])]
    config: Config
    scope: Scope
    group_id: Annotated[Id | None, Field(description="Required for the scope `group`, forbidden for `org`.")] = None
    enabled: bool = True
    priority: Priority


@partial
class ContentFilterUpdate(NewContentFilter):
    """A partial update: omitted fields keep their values. `config` is replaced as a whole. The scope `org` removes the
    group."""

    filter_type: Annotated[FilterType, Field(default_factory=omitted)]
    group_id: Id | None = None


class ContentFilter(ResponseBody):
    id: UUID
    tenant_id: UUID
    name: str
    description: str | None
    filter_type: FilterType
    config: dict[str, Any]
    scope: Scope
    group_id: UUID | None
    enabled: bool
    priority: int
    created_at: datetime
    updated_at: datetime


class FilterTrial(Body):
    text: Annotated[
        str,
        StringConstraints(strip_whitespace=False, max_length=100_000),
        Field(examples=["What is Project Falcon about?"]),
    ]
    group_id: Annotated[
        Id | None, Field(description="Evaluate as a member of this group. If omitted, as a user without groups.")
    ] = None


class TriedFilter(ResponseBody):
    id: str
    name: str
    filter_type: FilterType


class TriedInstruction(ResponseBody):
    id: str
    name: str
    instruction: str


class FilterTried(ResponseBody):
    blocked: bool
    blocked_by: Annotated[TriedFilter | None, Field(description="The first filter that refuses the text.")]
    instructions: Annotated[
        list[TriedInstruction], Field(description="Texts prepended to the system prompt, in this order.")
    ]
    filters_evaluated: Annotated[int, Field(description="Enabled filters that apply to the group or to all users.")]
    failed: Annotated[list[TriedFilter], Field(description="Topic filters that could not be evaluated.")]
    failure: Annotated[str | None, Field(description="Reason why the topic filters failed.", examples=["timeout"])]
