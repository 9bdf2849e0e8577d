"""Bodies of the content filters' endpoints (reference 3, Content filter)."""

from datetime import datetime
from typing import Annotated, Any, Literal
from uuid import UUID

from pydantic import Field, StringConstraints

from gatehouse.foundation.http.bodies import Body, Id, Shown, unsent
from gatehouse.policy.governance import FilterType

Name = Annotated[str, Field(min_length=1, max_length=255, pattern=r"^[^\x00-\x1f\x7f]+$", examples=["Project names"])]
Description = Annotated[str, Field(max_length=2_000)]
Scope = Literal["org", "group"]
Priority = Annotated[
    int, Field(ge=-1_000_000, le=1_000_000, description="The lowest is looked at first.", examples=[10])
]
#: What it must hold depends on the type: see `config`.
Config = Annotated[
    dict[str, Any],
    Field(
        description="`keyword_block`: `keywords`; `topic_block`: `topics`, and `threshold` if not 0.5;"
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
    group_id: Annotated[Id | None, Field(description="Needed for the scope `group`, and only there.")] = None
    enabled: bool = True
    priority: Priority


class ContentFilterUpdate(Body):
    """Partial: what is left out stays. `config` is replaced whole; with `scope` `org` the group is forgotten."""

    name: Annotated[Name, Field(default_factory=unsent)]
    description: Description | None = None
    filter_type: Annotated[FilterType, Field(default_factory=unsent)]
    config: Annotated[Config, Field(default_factory=unsent)]
    scope: Annotated[Scope, Field(default_factory=unsent)]
    group_id: Id | None = None
    enabled: Annotated[bool, Field(default_factory=unsent)]
    priority: Annotated[Priority, Field(default_factory=unsent)]


class ContentFilter(Shown):
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
    group_id: Annotated[Id | None, Field(description="As a member of this group; else of none.")] = None


class TriedFilter(Shown):
    id: str
    name: str
    filter_type: FilterType


class TriedInstruction(Shown):
    id: str
    name: str
    instruction: str


class FilterTried(Shown):
    blocked: bool
    blocked_by: Annotated[TriedFilter | None, Field(description="The first filter that refuses the text.")]
    instructions: Annotated[
        list[TriedInstruction], Field(description="What is put before the system prompt, in this order.")
    ]
    filters_evaluated: Annotated[int, Field(description="Enabled filters that hold for the group, or for everybody.")]
    failed: Annotated[list[TriedFilter], Field(description="Topics that could not be judged.")]
    failure: Annotated[str | None, Field(description="Why they could not.", examples=["timeout"])]
