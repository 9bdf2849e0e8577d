"""Bodies of the trials' endpoints."""

from typing import Annotated, Any, Literal
from uuid import UUID

from pydantic import ConfigDict, Field

from gatehouse.detection.pattern import ActionTier
from gatehouse.foundation.http.bodies import Body, Id, ResponseBody
from gatehouse.platform.governance.dlp_fields import (
    MAX_RULES,
    MAX_TEXT_CHARACTERS,
    EntityType,
    Regex,
    StreamMaxLength,
    Text,
)
from gatehouse.platform.governance.replays.schemas import Measured, Recorded, ReplaySummary
from gatehouse.policy.governance import DetectorType

FinalAction = Literal["allow", "log_only", "redact", "prompt", "block"]


class NewTest(Body):
    rule_type: Literal["regex", "ner", "gliner"]
    pattern: Annotated[
        Regex,
        Field(description="A regular expression in RE2 syntax, or comma-separated labels.", examples=["EMP-[0-9]{6}"]),
    ]
    sample_text: Text
    entity_type: Annotated[EntityType, Field(description="Entity type of the matches of a regular expression.")] = (
        "custom"
    )
    action_tier: Annotated[ActionTier, Field(description="Action of the matches.")] = "log_only"


class TestMatch(ResponseBody):
    __test__ = False

    start: Annotated[int, Field(description="Offset in `sample_text`, in Unicode code points.")]
    end: int
    matched_text: str
    entity_type: str
    action: ActionTier


class TestResult(ResponseBody):
    __test__ = False

    matches: Annotated[list[TestMatch], Field(description="The first 1,000 matches.")]
    match_count: int
    rule_type: Literal["regex", "ner", "gliner"]
    valid_pattern: bool
    stream_max_length: StreamMaxLength
    error: str | None


class NewEvaluation(Body):
    text: Text
    org_id: Annotated[Id | None, Field(description="The id of your own organization.")] = None
    group_id: Annotated[Id | None, Field(description="Evaluate as a member of this group.")] = None
    user_id: Annotated[Id | None, Field(description="Evaluate as this user, with all groups of the user.")] = None


class EvaluatedMatch(ResponseBody):
    start: Annotated[int, Field(description="Offset in `text`, in Unicode code points.")]
    end: int
    score: float


class MatchedRule(ResponseBody):
    rule_id: str
    rule_name: str
    detector_type: DetectorType
    entity_type: str
    action_tier: Annotated[ActionTier, Field(description="The rule's own action. Overrides are not applied.")]
    match_count: int
    matches: Annotated[list[EvaluatedMatch], Field(description="The first 20 matches.")]
    source: Literal["platform", "organization"]


class Evaluation(ResponseBody):
    text_length: int
    org_id: UUID
    rules_evaluated: int
    rules_matched: int
    final_action: FinalAction
    matched_rules: list[MatchedRule]
    suppressed_rule_ids: list[str]
    custom_org_patterns: Annotated[list[str], Field(description="Names of the active custom patterns.")]
    decision_trace: list[str]


class NewSample(Body):
    model_config = ConfigDict(str_strip_whitespace=False, extra="ignore")

    id: Annotated[str | int | None, Field(examples=["ticket-17"])] = None
    text: Annotated[str, Field(max_length=MAX_TEXT_CHARACTERS, examples=["My card is 4111 1111 1111 1111."])]


class Draft(Body):
    """A draft of the rules. For omitted fields, the active rules or suppressions are used. Custom patterns stay
    active."""

    rules: Annotated[
        list[dict[str, Any]] | None,
        Field(
            max_length=MAX_RULES,
            description="Rules that replace the organization's rules, with the fields of `POST /api/admin/dlp-rules/`.",
            examples=[[{
                "detector_name": "Cards", "detector_type": "regex", "entity_type": "credit_card",
                "action_tier": "block",
            }]],
        ),
    ] = None  # fmt: skip
    add_rule: Annotated[
        dict[str, Any] | None,
        Field(description="One additional rule, with the fields of `POST /api/admin/dlp-rules/`."),
    ] = None
    suppressions: Annotated[
        list[str] | None, Field(max_length=MAX_RULES, description="Ids of built-in patterns.", examples=[["email"]])
    ] = None


class NewReplay(Draft):
    samples: list[NewSample | Annotated[str, Field(max_length=MAX_TEXT_CHARACTERS)]] | None = None
    recorded: Recorded | None = None

    model_config = ConfigDict(str_strip_whitespace=False)


class ReplayedMatch(ResponseBody):
    rule_name: str
    entity_type: str
    direction: Literal["input", "output"]
    text: Annotated[int, Field(description="Index of the text in the request or in the answer, from 0.")]
    start: Annotated[int, Field(description="Offset in that text, in Unicode code points.")]
    end: int
    score: float
    excerpt: Annotated[
        str,
        Field(
            description="The match in its context. In matches, letters are replaced by `x` and digits by `9`.",
            examples=["My card is 9999 9999."],
        ),
    ]


class ReplayMeasure(Measured):
    """Scores of an entity type on the samples that a reviewer has labelled for it."""

    entity_type: str


class ReplayedSample(ResponseBody):
    index: Annotated[int, Field(description="Index from 0. Empty lines of a file are not counted.")]
    id: str | int | None
    action: FinalAction
    action_now: Annotated[FinalAction, Field(description="Action of the active policy.")]
    action_then: Annotated[FinalAction | None, Field(description="Recorded action. Null if unknown.")]
    rules: Annotated[list[str], Field(description="Names of the draft's rules that matched.")]
    cost_us: Annotated[float, Field(description="Time of the draft's evaluation in microseconds.")]
    matches: Annotated[
        list[ReplayedMatch], Field(description="The draft's first 20 matches. Empty for samples in the body.")
    ]


class ReplayedRule(ResponseBody):
    rule_name: str
    entity_type: str
    detector_type: DetectorType
    source: Literal["platform", "organization"]
    action_tier: Annotated[
        ActionTier | None, Field(description="Action in the draft. Null if the draft has no such rule.")
    ]
    action_tier_now: Annotated[
        ActionTier | None, Field(description="Action of the active rule. Null if there is no such active rule.")
    ]
    samples: Annotated[int, Field(description="Number of samples that the rule matched.")]
    samples_now: int
    matches: int
    matches_now: int


class ReplayCost(ResponseBody):
    """Time to evaluate one sample, in microseconds."""

    mean_us: float
    p95_us: float
    max_us: float
    mean_us_now: float


class Replayed(ReplaySummary):
    totals: dict[FinalAction, int]
    totals_now: dict[FinalAction, int]
    totals_then: Annotated[
        dict[FinalAction, int],
        Field(description="Number of samples by recorded action. Samples without one are not counted."),
    ]
    tier_failures: Annotated[int, Field(description="Number of samples for which a model tier failed.")]
    rules: list[ReplayedRule]
    cost: ReplayCost
    measures: list[ReplayMeasure]
    results: list[ReplayedSample]
