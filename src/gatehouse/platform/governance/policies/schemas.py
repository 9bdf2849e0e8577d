"""Bodies of the policy rules' endpoints."""

from datetime import datetime
from typing import Annotated, Any, Final, Literal
from uuid import UUID

from pydantic import AwareDatetime, Field, StringConstraints

from gatehouse.foundation.http.bodies import Body, ResponseBody, omitted, partial
from gatehouse.platform.governance.replays.schemas import Measured, Recorded, ReplaySummary
from gatehouse.policy.governance import PolicyAction
from gatehouse.policy.rules.conditions import MAX_CONDITION_CHARACTERS

#: Maximum policy rules of an organization.
MAX_RULES: Final = 1_000

Sort = Literal["priority", "-priority", "name", "-name", "created_at", "-created_at"]

Name = Annotated[str, Field(min_length=1, max_length=255, pattern=r"^[^\x00-\x1f\x7f]+$", examples=["No SSN abroad"])]
Description = Annotated[str, Field(max_length=2_000)]
Priority = Annotated[
    int,
    Field(
        ge=-1_000_000, le=1_000_000, description="The rule with the lowest priority is evaluated first.", examples=[10]
    ),
]
Condition = Annotated[
    str,
    StringConstraints(min_length=1, max_length=MAX_CONDITION_CHARACTERS),
    Field(
        description="A CEL expression of the type bool.",
        examples=['provider == "openai" && "ssn" in dlp.entities'],
    ),
]
RouteTo = Annotated[
    str,
    Field(
        min_length=3,
        max_length=320,
        description="`provider/model-id` of a model in the catalog. Only for the action ROUTE.",
        examples=["local/llama-3"],
    ),
]
Message = Annotated[str, Field(min_length=1, max_length=500, description="The message that a blocked caller gets.")]
Terminal = Annotated[
    bool,
    Field(
        description="Whether to stop the evaluation when this rule matches. Default: false for LOG,"
        " true for all other actions."
    ),
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


@partial
class PolicyUpdate(NewPolicy):
    """A partial update: omitted fields keep their values."""

    action: Annotated[PolicyAction, Field(default_factory=omitted)]
    terminal: Annotated[bool, Field(default_factory=omitted)]


class Policy(ResponseBody):
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
    kind: Literal["user", "api_key", "oauth_client", "application"] = "api_key"


class TrialDlp(Body):
    action: Literal["ALLOW", "PROMPT", "REDACT"] = "ALLOW"
    entities: Annotated[list[str], Field(max_length=200, default_factory=list)]
    counts: Annotated[dict[str, int], Field(default_factory=dict)]


class TrialRequest(Body):
    fields: Annotated[list[str], Field(max_length=300, default_factory=list, examples=[["messages", "tools.mcp"]])]


class TrialToolCall(Body):
    """A call of a tool of an MCP server."""

    server: Annotated[str, Field(max_length=64, examples=["mail"])] = ""
    tool: Annotated[str, Field(max_length=128, examples=["send"])] = ""
    arguments: Annotated[dict[str, Any], Field(default_factory=dict, examples=[{"to": "bob@example.com"}])]


class TrialContext(Body):
    """Values of the variables. By default, `user`, `groups` and `ip` come from the caller, `time` is the current time,
    and `provider` comes from `model`. The risk tier and the status come from the registry's entry for `model`. There
    are no findings, and the cost is unknown."""

    model: Annotated[str, Field(max_length=320, description="`provider/model-id`.", examples=["openai/gpt-4o"])] = ""
    provider: str | None = None
    model_risk_tier: str | None = None
    validation_status: str | None = None
    user: TrialUser | None = None
    groups: Annotated[list[str], Field(max_length=1_000)] | None = None
    dlp: Annotated[TrialDlp | None, Field(description="Result of DLP inspection.")] = None
    tokens: Annotated[int, Field(ge=0, le=10**9)] = 0
    cost_usd: Annotated[float, Field(ge=0, le=10**9)] | None = None
    ip: Annotated[str, Field(max_length=64)] | None = None
    request: Annotated[TrialRequest | None, Field(description="Names of the request's fields.")] = None
    time: Annotated[AwareDatetime, Field(strict=False)] | None = None
    mcp: Annotated[
        TrialToolCall | None,
        Field(description="A call of a tool. With it, the rules of tool calls are evaluated, and not those of models."),
    ] = None


class PolicyTrial(Body):
    condition: Annotated[
        Condition | None,
        Field(description="A condition to evaluate alone. If omitted, the active rules are evaluated."),
    ] = None
    context: TrialContext | None = None


class TriedRule(ResponseBody):
    """An evaluated rule. If the evaluation of its condition failed, the rule is treated as matched if its action is
    BLOCK, else as unmatched."""

    id: str
    name: str
    action: PolicyAction
    terminal: bool
    result: Literal["matched", "failed", "unmatched"]
    reason: Annotated[str | None, Field(description="Reason why the condition failed.")]


class PolicyTried(ResponseBody):
    matched: Annotated[bool, Field(description="Whether the condition is true, or an active rule matches.")]
    error: Annotated[str | None, Field(description="Reason why the evaluation of the condition failed.")]
    action: Annotated[
        PolicyAction | None, Field(description="Resulting action. Null if only a condition was evaluated.")
    ]
    rule_id: str | None
    rule_name: str | None
    route_to: str | None
    rules: Annotated[list[TriedRule], Field(description="The evaluated rules, in order.")]
    context: Annotated[dict[str, Any], Field(description="The variables of the evaluation.")]


class PolicyDraft(Body):
    """A draft of the rules. Without `rules`, the draft contains the active rules."""

    rules: Annotated[
        list[NewPolicy] | None,
        Field(max_length=MAX_RULES, description="Rules that replace the organization's rules."),
    ] = None
    add_rule: Annotated[NewPolicy | None, Field(description="One additional rule.")] = None


class NewPolicyReplay(PolicyDraft):
    recorded: Recorded


class ReplayedRequest(ResponseBody):
    """A replayed sample. `action_then` is the recorded action for the first candidate model."""

    index: Annotated[int, Field(description="Index from 0. The newest sample is the first.")]
    id: Annotated[str, Field(description="Id of the sample.")]
    action: PolicyAction
    action_now: Annotated[PolicyAction, Field(description="Action of the active rules.")]
    action_then: Annotated[PolicyAction, Field(description="Recorded action.")]
    rules: Annotated[list[str], Field(description="Names of the draft's rules that matched.")]
    failed: Annotated[list[str], Field(description="Names of the draft's rules whose condition failed.")]
    model: Annotated[str, Field(description="`provider/model-id` of the candidate.")]
    route_to: Annotated[str | None, Field(description="The target to which the draft routes the request.")]


class ReplayedPolicy(ResponseBody):
    """A rule that matched, or whose condition failed."""

    rule_name: str
    action: Annotated[
        PolicyAction | None,
        Field(description="Action in the draft. Null if the draft has no such rule, or did not evaluate it."),
    ]
    action_now: Annotated[
        PolicyAction | None,
        Field(description="Action of the active rule. Null if there is no such active rule, or it was not evaluated."),
    ]
    samples: Annotated[int, Field(description="Number of samples that the rule matched.")]
    samples_now: int
    failed: Annotated[int, Field(description="Number of samples on which the draft's condition failed.")]


class PolicyMeasure(Measured):
    """Scores by the action that a reviewer expects."""

    action: PolicyAction


class PoliciesReplayed(ReplaySummary):
    left_out: Annotated[
        int, Field(description="Number of samples that were recorded without an evaluation of policy rules.")
    ]
    totals: dict[PolicyAction, int]
    totals_now: dict[PolicyAction, int]
    totals_then: dict[PolicyAction, int]
    rules: list[ReplayedPolicy]
    measures: list[PolicyMeasure]
    results: list[ReplayedRequest]
