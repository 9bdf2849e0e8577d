"""What a rule's `config_json` may hold, by its detector (reference 3, DLP rule)."""

from collections.abc import Mapping
from typing import Annotated, Any, Final

from pydantic import Field, ValidationError

from gatehouse.detection.catalog import BUILT_IN
from gatehouse.detection.entities.offered import Recognisers
from gatehouse.foundation.errors import FieldFault, Unprocessable
from gatehouse.foundation.http.bodies import Body
from gatehouse.platform.governance.dlp_fields import MOST_RECOGNISERS, ContextWords, Label, Recogniser, Regex, Threshold
from gatehouse.platform.governance.dlp_rules.schemas import NewDlpRule
from gatehouse.policy.governance import DetectorType

_BUILT_IN_TYPES: Final = frozenset(pattern.entity_type for pattern in BUILT_IN)


class RegexConfig(Body):
    pattern: Regex | None = None
    context: ContextWords = Field(default_factory=list)
    reversible: bool = False


class NerConfig(Body):
    """All of `ENTITIES` where `entities` is left out."""

    entities: Annotated[list[Recogniser], Field(min_length=1, max_length=MOST_RECOGNISERS)] | None = None
    reversible: bool = False


class LlmConfig(Body):
    labels: Annotated[list[Label], Field(min_length=1, max_length=50)]
    threshold: Threshold = 0.5


_KINDS: Final[Mapping[DetectorType, type[RegexConfig | NerConfig | LlmConfig]]] = {
    "regex": RegexConfig,
    "ner": NerConfig,
    "llm": LlmConfig,
}


def read(rule: NewDlpRule, recognisers: Recognisers) -> RegexConfig | NerConfig | LlmConfig:
    """Raises `Unprocessable`, which names the fields. A pattern is not compiled here. A disabled rule may look for what
    the installation's model does not recognise: so one can be disabled after the model is gone."""
    try:
        known = _KINDS[rule.detector_type].model_validate(rule.config_json)
    except ValidationError as error:
        raise Unprocessable(faults=[_fault(each) for each in error.errors(include_url=False)]) from None
    if isinstance(known, RegexConfig) and known.pattern is None:
        if rule.entity_type not in _BUILT_IN_TYPES:
            told = f"is required: no built-in pattern finds {rule.entity_type!r}"
            raise Unprocessable(faults=[FieldFault("config_json.pattern", told)])
        if known.context:
            raise Unprocessable(faults=[FieldFault("config_json.context", "belongs to a pattern of the rule's own")])
    if isinstance(known, NerConfig) and rule.enabled:
        refusals = [(place, recognisers.refusal(name)) for place, name in enumerate(known.entities or ())]
        faults = [FieldFault(f"config_json.entities.{place}", why) for place, why in refusals if why is not None]
        if faults:
            raise Unprocessable(faults=faults)
    return known


def _fault(error: Any) -> FieldFault:
    place = ".".join(str(part) for part in ("config_json", *error["loc"]))
    return FieldFault(place, str(error["msg"]).removeprefix("Value error, "))
