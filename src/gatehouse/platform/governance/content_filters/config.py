"""What a filter's `config` may hold, by its type (reference 3, Content filter)."""

from collections.abc import Mapping
from typing import Annotated, Any, Final, TypeAlias

from pydantic import AfterValidator, Field, ValidationError

from gatehouse.detection.keywords import folded
from gatehouse.foundation.errors import FieldFault, Unprocessable
from gatehouse.foundation.http.bodies import Body
from gatehouse.policy.governance import FilterType

#: Keywords of all of an organization's filters.
MOST_KEYWORDS: Final = 10_000


def _can_be_seen(keyword: str) -> str:
    if not folded(keyword):
        raise ValueError("has nothing in it that can be seen")
    return keyword


Keyword = Annotated[str, Field(min_length=1, max_length=200), AfterValidator(_can_be_seen)]
Topic = Annotated[str, Field(min_length=1, max_length=300, pattern=r"^[^\x00-\x1f\x7f]+$")]


class KeywordConfig(Body):
    keywords: Annotated[list[Keyword], Field(min_length=1, max_length=1_000)]


class TopicConfig(Body):
    topics: Annotated[list[Topic], Field(min_length=1, max_length=50)]
    threshold: Annotated[float, Field(ge=0, le=1)] = 0.5


class InstructionConfig(Body):
    instruction: Annotated[str, Field(min_length=1, max_length=10_000)]


Config: TypeAlias = KeywordConfig | TopicConfig | InstructionConfig

_KINDS: Final[Mapping[FilterType, type[Config]]] = {
    "keyword_block": KeywordConfig,
    "topic_block": TopicConfig,
    "custom_instruction": InstructionConfig,
}


def read(filter_type: FilterType, config: dict[str, Any]) -> Config:
    """Raises `Unprocessable`, which names the fields."""
    try:
        return _KINDS[filter_type].model_validate(config)
    except ValidationError as error:
        raise Unprocessable(faults=[_fault(each) for each in error.errors(include_url=False)]) from None


def _fault(error: Any) -> FieldFault:
    place = ".".join(str(part) for part in ("config", *error["loc"]))
    return FieldFault(place, str(error["msg"]).removeprefix("Value error, "))
