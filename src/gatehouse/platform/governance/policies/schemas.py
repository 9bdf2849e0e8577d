"""Bodies of the policy rules' endpoints (decisions of the contract: Policy engine)."""

from datetime import datetime
from typing import Annotated, Any, Final, Literal
from uuid import UUID

from pydantic import AwareDatetime, Field, StringConstraints

from gatehouse.foundation.http.bodies import Body, Shown, unsent
from gatehouse.platform.governance.replays.schemas import Measured, Recorded, ReplaySummary
from gatehouse.policy.conditions import LONGEST
from gatehouse.policy.governance import PolicyAction

#: Rules an organization may have.
MAX_RULES: Final = 1_000

Name = Annotated[str, Field(min_length=1, max_length=255, pattern=r"^[^\x00-\x1f\x7f]+$", examples=["No SSN abroad"])]
Description = Annotated[str, Field(max_length=2_000)]
Priority = Annotated[
    int, Field(ge=-1_000_000, le=1_000_000, description="The lowest is looked at first.", examples=[10])
]
Condition = Annotated[
    str,
    StringConstraints(min_length=1, max_length=LONGEST),
    Field(
        description="CEL, true or false.",
        examples=['provider == "openai" && "ssn" in dlp.entities'],
    ),
]
RouteTo = Annotated[
    str,
    Field(
        min_length=3,
        max_length=320,
        description="`provider/model-id` of the catalog; for ROUTE alone.",
        examples=["local/llama-3"],
    ),
]
Message = Annotated[str, Field(min_length=1, max_length=500, description="What a blocked caller is told.")]
Terminal = Annotated[
    bool,
    Field(description="Whether no later rule is looked at once this one matches. Left out: true, for LOG false."),
]


class NewPolicy(Body):
    name: Name
    description: Description | None = None
    priority: Priority = 100
    enabled: bool = True
    condition: Condition
    action: Annotated[PolicyAction, Field(examples=["BLOCK"])]
    route_to: RouteTo | None = None
    terminal: Terminal | None = None
    message: Message | None = None


class PolicyUpdate(Body):
    """Partial: what is left out stays."""

    name: Annotated[Name, Field(default_factory=unsent)]
    description: Description | None = None
    priority: Annotated[Priority, Field(default_factory=unsent)]
    enabled: Annotated[bool, Field(default_factory=unsent)]
    condition: Annotated[Condition, Field(default_factory=unsent)]
    action: Annotated[PolicyAction, Field(default_factory=unsent)]
    route_to: RouteTo | None = None
    terminal: Annotated[bool, Field(default_factory=unsent)]
    message: Message | None = None


class Policy(Shown):
    id: UUID
    tenant_id: UUID
    name: str
    description: str | None
    priority: int
    enabled: bool
    condition: str
    action: PolicyAction
    route_to: str | None
    terminal: bool
    message: str | None
    created_at: datetime
    updated_at: datetime


class TrialUser(Body):
    id: str = ""
    email: str = ""
    role: Literal["admin", "auditor", "user", "client"] = "user"
    kind: Literal["user", "api_key", "oauth_client"] = "api_key"


class TrialDlp(Body):
    action: Literal["ALLOW", "PROMPT", "REDACT"] = "ALLOW"
    entities: Annotated[list[str], Field(max_length=200, default_factory=list)]
    counts: Annotated[dict[str, int], Field(default_factory=dict)]


class TrialRequest(Body):
    fields: Annotated[list[str], Field(max_length=300, default_factory=list, examples=[["messages", "tools.mcp"]])]


class TrialContext(Body):
    """What the variables are. Left out: `user`, `groups` and `ip` are yours, `time` is now, what the registry says of
    `model` is looked up, `provider` is read from it, nothing was found, and the cost is unknown."""

    model: Annotated[str, Field(max_length=320, description="`provider/model-id`.", examples=["openai/gpt-4o"])] = ""
    provider: str | None = None
    model_risk_tier: str | None = None
    validation_status: str | None = None
    user: TrialUser | None = None
    groups: Annotated[list[str], Field(max_length=1_000)] | None = None
    dlp: Annotated[TrialDlp | None, Field(description="What DLP found.")] = None
    tokens: Annotated[int, Field(ge=0, le=10**9)] = 0
    cost_usd: Annotated[float, Field(ge=0, le=10**9)] | None = None
    ip: Annotated[str, Field(max_length=64)] | None = None
    request: Annotated[TrialRequest | None, Field(description="Names of the request's fields.")] = None
    time: Annotated[AwareDatetime, Field(strict=False)] | None = None


class PolicyTrial(Body):
    condition: Annotated[
        Condition | None, Field(description="Tried alone. Left out: the rules in force are asked, in their order.")
    ] = None
    context: TrialContext | None = None


class TriedRule(Shown):
    """`result`: a condition that failed counts as matched for BLOCK, and as unmatched otherwise."""

    id: str
    name: str
    action: PolicyAction
    terminal: bool
    result: Literal["matched", "failed", "unmatched"]
    reason: Annotated[str | None, Field(description="Why it failed.")]


class PolicyTried(Shown):
    matched: Annotated[bool, Field(description="Whether the condition holds, or a rule in force matches.")]
    error: Annotated[str | None, Field(description="Why the condition came to no true or false.")]
    action: Annotated[PolicyAction | None, Field(description="What the rules come to; null for a condition alone.")]
    rule_id: str | None
    rule_name: str | None
    route_to: str | None
    rules: Annotated[list[TriedRule], Field(description="The rules that were looked at, in order.")]
    context: Annotated[dict[str, Any], Field(description="The variables, as they were.")]


class PolicyDraft(Body):
    """What would be in force in the place of what is. Left out: as it is."""

    rules: Annotated[
        list[NewPolicy] | None,
        Field(max_length=MAX_RULES, description="In the place of the organization's rules; each as it is created."),
    ] = None
    add_rule: Annotated[NewPolicy | None, Field(description="One more rule, beside the others; as it is created.")] = (
        None
    )


class NewPolicyReplay(PolicyDraft):
    recorded: Recorded


class ReplayedRequest(Shown):
    """`action_then` is what the rules of then came to for the first place that could answer."""

    index: Annotated[int, Field(description="From 0, newest first.")]
    id: Annotated[str, Field(description="The sample's.")]
    action: PolicyAction
    action_now: Annotated[PolicyAction, Field(description="By what is in force.")]
    action_then: Annotated[PolicyAction, Field(description="When it was recorded.")]
    rules: Annotated[list[str], Field(description="Names of the draft's rules that matched.")]
    failed: Annotated[list[str], Field(description="Names of the draft's rules whose condition failed.")]
    model: Annotated[str, Field(description="`provider/model-id` of the place.")]
    route_to: Annotated[str | None, Field(description="Where the draft sends the call.")]


class ReplayedPolicy(Shown):
    """A rule that matched, or whose condition failed."""

    rule_name: str
    action: Annotated[PolicyAction | None, Field(description="By the draft; null: it has no such rule, or no need.")]
    action_now: Annotated[PolicyAction | None, Field(description="By what is in force; null: as for `action`.")]
    samples: Annotated[int, Field(description="How many samples it matched in.")]
    samples_now: int
    failed: Annotated[int, Field(description="In how many the draft's condition failed.")]


class PolicyMeasure(Measured):
    """Samples by the action that a reviewer says is right."""

    action: PolicyAction


class PoliciesReplayed(ReplaySummary):
    left_out: Annotated[int, Field(description="Samples about which policy rules were not asked.")]
    totals: dict[PolicyAction, int]
    totals_now: dict[PolicyAction, int]
    totals_then: dict[PolicyAction, int]
    rules: list[ReplayedPolicy]
    measures: list[PolicyMeasure]
    results: list[ReplayedRequest]
