"""Kinds of fields that DLP rules, custom patterns and drafts share."""

from typing import Annotated, Final

from fastapi import Depends
from pydantic import AfterValidator, Field, StringConstraints

from gatehouse.detection.entities.choosing import own_name
from gatehouse.detection.entities.offered import Recognisers, offered
from gatehouse.detection.taxonomy import ENTITY_TYPE_PATTERN
from gatehouse.platform.ports import TheHost

Name = Annotated[
    str, Field(min_length=1, max_length=255, pattern=r"^[^\x00-\x1f\x7f]+$", examples=["Employee numbers"])
]
EntityType = Annotated[str, Field(pattern=ENTITY_TYPE_PATTERN, examples=["employee_id"])]
Threshold = Annotated[float, Field(ge=0, le=1, examples=[0.5])]

#: RE2 syntax. White space counts.
Regex = Annotated[
    str,
    StringConstraints(strip_whitespace=False, min_length=1, max_length=2_000),
    Field(description="RE2 syntax.", examples=["EMP-[0-9]{6}"]),
]
StreamMaxLength = Annotated[
    int | None,
    Field(
        description="Characters that a streamed answer is looked at for one match; null: no match is longer, or there"
        " is no pattern.",
        examples=[4096],
    ),
]
ContextWord = Annotated[str, Field(min_length=1, max_length=64)]
ContextWords = Annotated[
    list[ContextWord],
    Field(
        max_length=50, description="A match counts in full only beside one of these.", examples=[["employee", "badge"]]
    ),
]

#: What a recogniser looks for, in any case and with blanks or `_`; made to the name that findings have.
Recogniser = Annotated[
    str,
    Field(min_length=1, max_length=100, pattern=r"^\w[\w '&/-]*$", examples=["person"]),
    AfterValidator(own_name),
]

#: In one rule: a model needs time for each name that it does not always look for.
MOST_RECOGNISERS: Final = 50


def _recognisers(host: TheHost) -> Recognisers:
    return offered(host.settings.ner_model_path)


#: Which names rules may look for here.
TheRecognisers = Annotated[Recognisers, Depends(_recognisers)]

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
