"""Bodies of the trials' endpoints (reference 3, Endpoints, DLP rules: test, evaluate; replay)."""

from typing import Annotated, Any, Literal
from uuid import UUID

from pydantic import ConfigDict, Field

from gatehouse.detection.pattern import ActionTier
from gatehouse.foundation.http.bodies import Body, Id, Shown
from gatehouse.platform.governance.dlp_fields import LONGEST_TEXT, MOST, EntityType, Regex, StreamMaxLength, Text
from gatehouse.platform.governance.replays.schemas import Measured, Recorded, ReplaySummary
from gatehouse.policy.governance import DetectorType

FinalAction = Literal["allow", "log_only", "redact", "prompt", "block"]


class NewTest(Body):
    rule_type: Literal["regex", "ner", "gliner"]
    pattern: Annotated[
        Regex, Field(description="A regex in RE2 syntax, or comma-separated labels.", examples=["EMP-[0-9]{6}"])
    ]
    sample_text: Text
    entity_type: Annotated[EntityType, Field(description="What a match of a regex is shown as.")] = "custom"
    action_tier: Annotated[ActionTier, Field(description="What matches are shown with.")] = "log_only"


class TestMatch(Shown):
    __test__ = False

    start: Annotated[int, Field(description="Unicode code points of `sample_text`.")]
    end: int
    matched_text: str
    entity_type: str
    action: ActionTier


class TestResult(Shown):
    __test__ = False

    matches: Annotated[list[TestMatch], Field(description="The first 1,000.")]
    match_count: int
    rule_type: Literal["regex", "ner", "gliner"]
    valid_pattern: bool
    stream_max_length: StreamMaxLength
    error: str | None


class NewEvaluation(Body):
    text: Text
    org_id: Annotated[Id | None, Field(description="Your own organization.")] = None
    group_id: Annotated[Id | None, Field(description="As for a member of this group.")] = None
    user_id: Annotated[Id | None, Field(description="As for this user, with all their groups.")] = None


class EvaluatedMatch(Shown):
    start: Annotated[int, Field(description="Unicode code points of `text`.")]
    end: int
    score: float


class MatchedRule(Shown):
    rule_id: str
    rule_name: str
    detector_type: DetectorType
    entity_type: str
    action_tier: Annotated[ActionTier, Field(description="The rule's own; an override may have changed what is done.")]
    match_count: int
    matches: Annotated[list[EvaluatedMatch], Field(description="The first 20.")]
    source: Literal["platform", "organization"]


class Evaluation(Shown):
    text_length: int
    org_id: UUID
    rules_evaluated: int
    rules_matched: int
    final_action: FinalAction
    matched_rules: list[MatchedRule]
    suppressed_rule_ids: list[str]
    custom_org_patterns: Annotated[list[str], Field(description="Names of the custom patterns in force.")]
    decision_trace: list[str]


class NewSample(Body):
    model_config = ConfigDict(str_strip_whitespace=False, extra="ignore")

    id: Annotated[str | int | None, Field(examples=["ticket-17"])] = None
    text: Annotated[str, Field(max_length=LONGEST_TEXT, examples=["My card is 4111 1111 1111 1111."])]


class Draft(Body):
    """What would be in force in the place of what is. Left out: as it is. Custom patterns stay in force."""

    rules: Annotated[
        list[dict[str, Any]] | None,
        Field(
            max_length=MOST,
            description="In the place of the organization's rules; each as it is created.",
            examples=[[{
                "detector_name": "Cards", "detector_type": "regex", "entity_type": "credit_card",
                "action_tier": "block",
            }]],
        ),
    ] = None  # fmt: skip
    add_rule: Annotated[
        dict[str, Any] | None, Field(description="One more rule, beside the others; as it is created.")
    ] = None
    suppressions: Annotated[
        list[str] | None, Field(max_length=MOST, description="Ids of built-in patterns.", examples=[["email"]])
    ] = None


class NewReplay(Draft):
    samples: list[NewSample | Annotated[str, Field(max_length=LONGEST_TEXT)]] | None = None
    recorded: Recorded | None = None

    model_config = ConfigDict(str_strip_whitespace=False)


class ReplayedMatch(Shown):
    rule_name: str
    entity_type: str
    direction: Literal["input", "output"]
    text: Annotated[int, Field(description="Which of the request's texts, or of the answer's, from 0.")]
    start: Annotated[int, Field(description="Unicode code points of that text.")]
    end: int
    score: float
    excerpt: Annotated[
        str, Field(description="Letters of what was found are `x`, digits `9`.", examples=["My card is 9999 9999."])
    ]


class ReplayMeasure(Measured):
    """Samples in which a reviewer looked for an entity type: whether it is there, and whether it is found."""

    entity_type: str


class ReplayedSample(Shown):
    index: Annotated[int, Field(description="From 0; of a file, of its lines that are not empty.")]
    id: str | int | None
    action: FinalAction
    action_now: Annotated[FinalAction, Field(description="By what is in force.")]
    action_then: Annotated[
        FinalAction | None, Field(description="What was done when it was recorded; null: that is not known.")
    ]
    rules: Annotated[list[str], Field(description="Names of the draft's rules that matched.")]
    cost_us: Annotated[float, Field(description="Microseconds that the draft took.")]
    matches: Annotated[
        list[ReplayedMatch], Field(description="The first 20 of the draft's; empty for samples that you send.")
    ]


class ReplayedRule(Shown):
    rule_name: str
    entity_type: str
    detector_type: DetectorType
    source: Literal["platform", "organization"]
    action_tier: Annotated[ActionTier | None, Field(description="By the draft; null: it has no such rule.")]
    action_tier_now: Annotated[ActionTier | None, Field(description="By what is in force; null: no such rule.")]
    samples: Annotated[int, Field(description="How many samples it matched in.")]
    samples_now: int
    matches: int
    matches_now: int


class ReplayCost(Shown):
    """Microseconds a sample."""

    mean_us: float
    p95_us: float
    max_us: float
    mean_us_now: float


class Replayed(ReplaySummary):
    totals: dict[FinalAction, int]
    totals_now: dict[FinalAction, int]
    totals_then: Annotated[dict[FinalAction, int], Field(description="Of samples of which it is known.")]
    tier_failures: Annotated[int, Field(description="Samples about which a model tier gave no answer.")]
    rules: list[ReplayedRule]
    cost: ReplayCost
    measures: list[ReplayMeasure]
    results: list[ReplayedSample]
