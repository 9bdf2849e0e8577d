"""What the document holds, as bodies of the families that make it here."""

from collections.abc import Mapping
from typing import Any, Final, TypeVar
from uuid import UUID

import msgspec
from pydantic import ValidationError

from gatehouse.foundation.errors import FieldFault, Refusal, Unprocessable
from gatehouse.foundation.http.bodies import Body
from gatehouse.platform.governance.compliance_bundles.schemas import NewBundle
from gatehouse.platform.governance.content_filters.schemas import NewContentFilter
from gatehouse.platform.governance.dlp_customization.schemas import NewCustomPattern
from gatehouse.platform.governance.dlp_rules.schemas import NewDlpRule
from gatehouse.policy.governance import BundleRecord, DlpRuleRecord, FilterRecord

R = TypeVar("R")
B = TypeVar("B", bound=Body)


class Rule(DlpRuleRecord, frozen=True, kw_only=True):
    """A file that somebody has looked over need not say what things were called where it comes from."""

    id: str = ""


class Bundle(BundleRecord, frozen=True, kw_only=True):
    id: UUID | None = None  # type: ignore[assignment]


class Filter(FilterRecord, frozen=True, kw_only=True):
    id: UUID | None = None  # type: ignore[assignment]


#: what a body's field is called in the document, where that differs
_IN_THE_DOCUMENT: Final = {
    "detector_name": "name",
    "action_tier": "action",
    "confidence_threshold": "threshold",
    "context_words": "context",
    "seed_rule_mappings": "entity_types",
    "regulatory_framework": "framework",
    "config_json.threshold": "label_threshold",
}


class Misplaced(Exception):
    """Something in the document is not good: where, from the record on, and why."""

    def __init__(self, place: str, message: str) -> None:
        super().__init__(place, message)
        self.place, self.message = place, message


def of(kind: type[R], raw: Mapping[str, Any]) -> R:
    """Raises `Misplaced`."""
    try:
        return msgspec.convert(raw, kind)
    except msgspec.ValidationError as error:
        message, _, path = str(error).partition(" - at `$")
        raise Misplaced(path.rstrip("`"), message) from None


def new_rule(record: Rule) -> NewDlpRule:
    """Raises `Misplaced`."""
    config: dict[str, Any]
    if record.detector_type == "llm":
        config = {"labels": list(record.labels), "threshold": record.label_threshold}
    else:
        config = {"reversible": record.reversible}
        if record.detector_type == "ner" and record.entities:
            config["entities"] = list(record.entities)
        if record.detector_type == "regex" and record.pattern is not None:
            config |= {"pattern": record.pattern, "context": list(record.context)}
    return _body(
        NewDlpRule,
        detector_name=record.name,
        detector_type=record.detector_type,
        entity_type=record.entity_type,
        action_tier=record.action,
        confidence_threshold=record.threshold,
        config_json=config,
    )


def new_pattern(record: Rule) -> NewCustomPattern:
    """Raises `Misplaced`."""
    return _body(
        NewCustomPattern,
        name=record.name,
        entity_type=record.entity_type,
        pattern=record.pattern,
        action_tier=record.action,
        confidence_threshold=record.threshold,
        context_words=list(record.context),
    )


def new_bundle(record: Bundle) -> NewBundle:
    """Raises `Misplaced`."""
    return _body(
        NewBundle,
        name=record.name,
        regulatory_framework=record.framework,
        version=record.version,
        seed_rule_mappings=list(record.entity_types),
    )


def new_filter(record: Filter) -> NewContentFilter:
    """Raises `Misplaced`."""
    configs: dict[str, dict[str, Any]] = {
        "keyword_block": {"keywords": list(record.keywords)},
        "topic_block": {"topics": list(record.topics), "threshold": record.threshold},
        "custom_instruction": {"instruction": record.instruction},
    }
    return _body(
        NewContentFilter,
        name=record.name,
        filter_type=record.filter_type,
        config=configs[record.filter_type],
        scope="org" if record.group_id is None else "group",
        group_id=None if record.group_id is None else str(record.group_id),
        priority=record.priority,
    )


def told(error: Refusal) -> Misplaced:
    """What a family refuses, in the document's words."""
    if isinstance(error, Unprocessable) and error.faults:
        return _placed(error.faults[0])
    return Misplaced("", error.text)


def _body(kind: type[B], **values: Any) -> B:
    try:
        return kind.model_validate(values)
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        place = ".".join(map(str, first["loc"]))
        raise _placed(FieldFault(place, str(first["msg"]).removeprefix("Value error, "))) from None


def _placed(fault: FieldFault) -> Misplaced:
    place = _IN_THE_DOCUMENT.get(fault.field)
    if place is None:
        first, _, rest = fault.field.removeprefix("config_json.").removeprefix("config.").partition(".")
        place = ".".join(filter(None, (_IN_THE_DOCUMENT.get(first, first), rest)))
    return Misplaced(f".{place}", fault.message)
