"""Bodies of the samples' endpoints."""

from datetime import datetime
from typing import Annotated, Any
from uuid import UUID

from pydantic import Field

from gatehouse.foundation.http.bodies import Body, Shown, unsent
from gatehouse.platform.governance.dlp_fields import EntityType
from gatehouse.policy.governance import PolicyAction

Labels = Annotated[
    dict[EntityType, bool],
    Field(
        max_length=200,
        description="By entity type, whether it is in the sample. Types that are left out were not looked for.",
        examples=[{"credit_card": True, "email": False}],
    ),
]
ExpectedAction = Annotated[
    PolicyAction, Field(description="What policy rules should have come to.", examples=["BLOCK"])
]


class NewLabels(Body):
    """What is sent takes the place of what is there; null takes it away."""

    labels: Annotated[Labels | None, Field(default_factory=unsent)]
    expected_action: Annotated[ExpectedAction | None, Field(default_factory=unsent)]


class Sample(Shown):
    """Without what it says."""

    id: UUID
    request_id: str
    timestamp: datetime
    user_id: UUID | None
    requested_model: str | None
    texts: Annotated[int, Field(description="How many the request had: prompts, tools' results and the like.")]
    answer_texts: Annotated[int | None, Field(description="How many the answer had; null: no answer is kept.")]
    characters: Annotated[int, Field(description="Unicode code points of all texts, the answer's too.")]
    labels: Labels | None
    expected_action: ExpectedAction | None
    labelled_by: str | None
    labelled_at: datetime | None


class RevealedSample(Sample):
    contents: Annotated[list[str], Field(description="The texts as they were sent, before DLP.")]
    answer: Annotated[list[str] | None, Field(description="The answer's, before DLP; null: no answer is kept.")]
    dlp_action: Annotated[
        str | None,
        Field(description="The strongest of what DLP did about these texts then.", examples=["redact"]),
    ]
    policy_action: Annotated[
        PolicyAction | None,
        Field(description="What policy rules came to then, for the first place; null: they were not asked."),
    ]
    context: Annotated[
        dict[str, Any] | None,
        Field(description="The variables of policy rules, as they were; null: they were not asked."),
    ]


class SampleList(Shown):
    samples: list[Sample]
    total: int
