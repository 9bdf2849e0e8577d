"""Schemas of a rule's `config_json`, one for each detector type."""

from collections.abc import Mapping
from typing import Annotated, Any, Final

from pydantic import Field, ValidationError

from gatehouse.detection.catalog import BUILT_IN
from gatehouse.detection.entities.offered import Recognisers
from gatehouse.foundation.errors import FieldFault, Unprocessable
from gatehouse.foundation.http.bodies import Body
from gatehouse.platform.governance.dlp_fields import MAX_RECOGNISERS, ContextWords, Label, Recogniser, Regex, Threshold
from gatehouse.platform.governance.dlp_rules.schemas import NewDlpRule
from gatehouse.policy.governance import DetectorType

_BUILT_IN_TYPES: Final = frozenset(pattern.entity_type for pattern in BUILT_IN)


class RegexConfig(Body):
    pattern: Regex | None = None
    context: ContextWords = Field(default_factory=list)
    reversible: bool = False


class NerConfig(Body):
    """Configuration of a `ner` rule. Without `entities` the rule uses all of
    `gatehouse.detection.models.ENTITIES`."""

    entities: Annotated[list[Recogniser], Field(min_length=1, max_length=MAX_RECOGNISERS)] | None = None
    reversible: bool = False


class LlmConfig(Body):
    labels: Annotated[list[Label], Field(min_length=1, max_length=50)]
    threshold: Threshold = 0.5


_SCHEMAS: Final[Mapping[DetectorType, type[RegexConfig | NerConfig | LlmConfig]]] = {
    "regex": RegexConfig,
    "ner": NerConfig,
    "llm": LlmConfig,
}


def read(rule: NewDlpRule, recognisers: Recognisers) -> RegexConfig | NerConfig | LlmConfig:
    """Validate a rule's configuration. Raises `Unprocessable` with the names of the fields.

    Patterns are not compiled here. A disabled rule may name recognisers that the installation's model lacks, so that
    a rule can be disabled after the model is removed.
    """
    try:
        parsed = _SCHEMAS[rule.detector_type].model_validate(rule.config_json)
    except ValidationError as error:
        raise Unprocessable(faults=[_fault(detail) for detail in error.errors(include_url=False)]) from None
    if isinstance(parsed, RegexConfig) and parsed.pattern is None:
        if rule.entity_type not in _BUILT_IN_TYPES:
            message = f"is required: no built-in pattern detects {rule.entity_type!r}"
            raise Unprocessable(faults=[FieldFault("config_json.pattern", message)])
        if parsed.context:
            raise Unprocessable(faults=[FieldFault("config_json.context", "requires config_json.pattern")])
    if isinstance(parsed, NerConfig) and rule.enabled:
        refusals = [(index, recognisers.refusal(name)) for index, name in enumerate(parsed.entities or ())]
        faults = [FieldFault(f"config_json.entities.{index}", why) for index, why in refusals if why is not None]
        if faults:
            raise Unprocessable(faults=faults)
    return parsed


def _fault(error: Any) -> FieldFault:
    field = ".".join(str(part) for part in ("config_json", *error["loc"]))
    return FieldFault(field, str(error["msg"]).removeprefix("Value error, "))
