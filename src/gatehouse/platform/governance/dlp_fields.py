"""Field types shared by DLP rules, custom patterns and drafts."""

from typing import Annotated, Final

from fastapi import Depends
from pydantic import AfterValidator, Field, StringConstraints

from gatehouse.detection.entities.choosing import own_name
from gatehouse.detection.entities.offered import Recognisers, offered
from gatehouse.detection.taxonomy import ENTITY_TYPE_PATTERN
from gatehouse.platform.request.ports import TheHost

Name = Annotated[
    str, Field(min_length=1, max_length=255, pattern=r"^[^\x00-\x1f\x7f]+$", examples=["Employee numbers"])
]
EntityType = Annotated[str, Field(pattern=ENTITY_TYPE_PATTERN, examples=["employee_id"])]
Threshold = Annotated[float, Field(ge=0, le=1, examples=[0.5])]

#: A pattern in RE2 syntax. White space is significant.
Regex = Annotated[
    str,
    StringConstraints(strip_whitespace=False, min_length=1, max_length=2_000),
    Field(description="RE2 syntax.", examples=["EMP-[0-9]{6}"]),
]
StreamMaxLength = Annotated[
    int | None,
    Field(
        description="Characters of one match that are inspected in a streamed answer, if the pattern can match more."
        " Null if it cannot, or if there is no pattern.",
        examples=[4096],
    ),
]
ContextWord = Annotated[str, Field(min_length=1, max_length=64)]
ContextWords = Annotated[
    list[ContextWord],
    Field(
        max_length=50,
        description="A match has its full confidence only near one of these words.",
        examples=[["employee", "badge"]],
    ),
]

#: A recogniser's entity name, in any case, with spaces or `_`. Validation converts it to the name used in findings.
Recogniser = Annotated[
    str,
    Field(min_length=1, max_length=100, pattern=r"^\w[\w '&/-]*$", examples=["person"]),
    AfterValidator(own_name),
]

#: Maximum number of recognisers in one rule. The limit bounds inference time, because each name that is not a fixed
#: label of the model is an additional label, which makes inference slower.
MAX_RECOGNISERS: Final = 50


async def _recognisers(host: TheHost) -> Recognisers:
    return offered(host.settings.ner_model_path)


#: The recognisers that rules may name in this installation.
TheRecognisers = Annotated[Recognisers, Depends(_recognisers)]

#: A label of the semantic tier, in natural language.
Label = Annotated[
    str, Field(min_length=1, max_length=100, pattern=r"^[^\x00-\x1f\x7f]+$", examples=["prompt injection"])
]

#: Maximum DLP rules of an organization.
MAX_RULES: Final = 1_000
#: Maximum custom patterns of an organization.
MAX_CUSTOM_PATTERNS: Final = 1_000
#: Maximum code points of a text of a trial. The limit is low enough for a trial to finish within a request.
MAX_TEXT_CHARACTERS: Final = 100_000
Text = Annotated[
    str,
    StringConstraints(strip_whitespace=False, max_length=MAX_TEXT_CHARACTERS),
    Field(examples=["Call EMP-123456 back."]),
]
