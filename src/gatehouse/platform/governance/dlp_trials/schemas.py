"""Bodies of the trials' endpoints (reference 3, Endpoints, DLP rules: test, evaluate; replay)."""

from typing import Annotated, Any, Literal
from uuid import UUID

from pydantic import ConfigDict, Field

from gatehouse.detection.pattern import ActionTier
from gatehouse.foundation.http.bodies import Body, Id, Shown
from gatehouse.platform.governance.dlp_fields import LONGEST_TEXT, MOST, EntityType, Regex, Text
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
    suppressions: Annotated[
        list[str] | None, Field(max_length=MOST, description="Ids of built-in patterns.", examples=[["email"]])
    ] = None


class NewReplay(Draft):
    samples: list[NewSample | Annotated[str, Field(max_length=LONGEST_TEXT)]]

    model_config = ConfigDict(str_strip_whitespace=False)


class ReplayedSample(Shown):
    index: Annotated[int, Field(description="From 0; of a file, of its lines that are not empty.")]
    id: str | int | None
    action: FinalAction
    action_now: Annotated[FinalAction, Field(description="By what is in force.")]
    rules: Annotated[list[str], Field(description="Names of the draft's rules that matched.")]
    cost_us: Annotated[float, Field(description="Microseconds that the draft took.")]


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


class ReplayDifferences(Shown):
    stricter: int
    weaker: int
    same: int


class Replayed(Shown):
    samples: int
    complete: Annotated[bool, Field(description="False where time ran out: the rest was not looked at.")]
    totals: dict[FinalAction, int]
    totals_now: dict[FinalAction, int]
    differences: ReplayDifferences
    tier_failures: Annotated[int, Field(description="Samples about which a model tier gave no answer.")]
    rules: list[ReplayedRule]
    cost: ReplayCost
    results: list[ReplayedSample]
