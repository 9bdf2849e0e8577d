"""Schemas of a filter's `config`, one for each type."""

from collections.abc import Mapping
from typing import Annotated, Any, Final, TypeAlias

from pydantic import AfterValidator, Field, ValidationError

from gatehouse.detection.keywords import folded
from gatehouse.foundation.errors import FieldFault, Unprocessable
from gatehouse.foundation.http.bodies import Body
from gatehouse.policy.governance import FilterType

#: Maximum number of keywords of all filters of an organization together.
MAX_KEYWORDS: Final = 10_000


def _require_visible(keyword: str) -> str:
    if not folded(keyword):
        raise ValueError("has no visible character")
    return keyword


Keyword = Annotated[str, Field(min_length=1, max_length=200), AfterValidator(_require_visible)]
Topic = Annotated[str, Field(min_length=1, max_length=300, pattern=r"^[^\x00-\x1f\x7f]+$")]


class KeywordConfig(Body):
    keywords: Annotated[list[Keyword], Field(min_length=1, max_length=1_000)]


class TopicConfig(Body):
    topics: Annotated[list[Topic], Field(min_length=1, max_length=50)]
    threshold: Annotated[float, Field(ge=0, le=1)] = 0.5


class InstructionConfig(Body):
    instruction: Annotated[str, Field(min_length=1, max_length=10_000)]


Config: TypeAlias = KeywordConfig | TopicConfig | InstructionConfig

_SCHEMAS: Final[Mapping[FilterType, type[Config]]] = {
    "keyword_block": KeywordConfig,
    "topic_block": TopicConfig,
    "custom_instruction": InstructionConfig,
}


def read(filter_type: FilterType, config: dict[str, Any]) -> Config:
    """Validate `config`. Raises `Unprocessable` with the names of the fields."""
    try:
        return _SCHEMAS[filter_type].model_validate(config)
    except ValidationError as error:
        raise Unprocessable(faults=[_fault(detail) for detail in error.errors(include_url=False)]) from None


def _fault(error: Any) -> FieldFault:
    field = ".".join(str(part) for part in ("config", *error["loc"]))
    return FieldFault(field, str(error["msg"]).removeprefix("Value error, "))
