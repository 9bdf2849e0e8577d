"""Bodies of the samples' endpoints."""

from datetime import datetime
from typing import Annotated, Any
from uuid import UUID

from pydantic import Field

from gatehouse.foundation.http.bodies import Body, ResponseBody, omitted
from gatehouse.platform.governance.dlp_fields import EntityType
from gatehouse.policy.governance import PolicyAction

Labels = Annotated[
    dict[EntityType, bool],
    Field(
        max_length=200,
        description="Maps an entity type to whether the sample contains it. Omitted types were not reviewed.",
        examples=[{"credit_card": True, "email": False}],
    ),
]
ExpectedAction = Annotated[PolicyAction, Field(description="Expected action of policy rules.", examples=["BLOCK"])]


class NewLabels(Body):
    """Labels of a sample. Fields in the body replace the stored ones. Null removes them."""

    labels: Annotated[Labels | None, Field(default_factory=omitted)]
    expected_action: Annotated[ExpectedAction | None, Field(default_factory=omitted)]


class Sample(ResponseBody):
    """A sample without its contents."""

    id: UUID
    request_id: str
    timestamp: datetime
    user_id: UUID | None
    requested_model: str | None
    texts: Annotated[int, Field(description="Number of texts of the request: prompts, tool results and others.")]
    answer_texts: Annotated[
        int | None, Field(description="Number of texts of the answer. Null if the answer is not kept.")
    ]
    characters: Annotated[int, Field(description="Unicode code points of all texts, including the answer.")]
    labels: Labels | None
    expected_action: ExpectedAction | None
    labelled_by: str | None
    labelled_at: datetime | None


class RevealedSample(Sample):
    contents: Annotated[list[str], Field(description="Texts of the request before DLP.")]
    answer: Annotated[
        list[str] | None, Field(description="Texts of the answer before DLP. Null if the answer is not kept.")
    ]
    dlp_action: Annotated[
        str | None,
        Field(description="Recorded DLP action, which is the strongest action on these texts.", examples=["redact"]),
    ]
    policy_action: Annotated[
        PolicyAction | None,
        Field(
            description="Recorded action of policy rules for the first candidate. Null if the request ended before"
            " policy rules were evaluated."
        ),
    ]
    context: Annotated[
        dict[str, Any] | None,
        Field(description="Recorded variables of policy rules. Null if no policy rules were evaluated."),
    ]


class SampleList(ResponseBody):
    samples: list[Sample]
    total: int
