"""Kinds of fields that DLP rules, custom patterns and drafts share."""

from typing import Annotated, Final, Literal, get_args

from pydantic import Field, StringConstraints

from gatehouse.detection.models import ENTITIES

Name = Annotated[
    str, Field(min_length=1, max_length=255, pattern=r"^[^\x00-\x1f\x7f]+$", examples=["Employee numbers"])
]
#: The taxonomy writes them in lower-case snake case; an organization's own may look otherwise.
EntityType = Annotated[str, Field(pattern=r"^[A-Za-z][A-Za-z0-9_-]{0,62}$", examples=["employee_id"])]
Threshold = Annotated[float, Field(ge=0, le=1, examples=[0.5])]

#: RE2 syntax. White space counts.
Regex = Annotated[
    str,
    StringConstraints(strip_whitespace=False, min_length=1, max_length=2_000),
    Field(description="RE2 syntax.", examples=["EMP-[0-9]{6}"]),
]
ContextWord = Annotated[str, Field(min_length=1, max_length=64)]
ContextWords = Annotated[
    list[ContextWord],
    Field(
        max_length=50, description="A match counts in full only beside one of these.", examples=[["employee", "badge"]]
    ),
]

Recogniser = Literal["person", "organization", "location", "address", "date_of_birth"]
assert get_args(Recogniser) == ENTITIES

#: A label of the semantic tier, in words.
Label = Annotated[
    str, Field(min_length=1, max_length=100, pattern=r"^[^\x00-\x1f\x7f]+$", examples=["prompt injection"])
]

#: Rules an organization may have, and as many patterns of its own.
MOST: Final = 1_000
#: Code points of a text that administration looks at: what is found in it is answered at once.
LONGEST_TEXT: Final = 100_000
Text = Annotated[
    str, StringConstraints(strip_whitespace=False, max_length=LONGEST_TEXT), Field(examples=["Call EMP-123456 back."])
]
