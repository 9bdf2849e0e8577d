"""Converts each record of an imported configuration to the request body with which the API creates such a record."""

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


class ImportedRule(DlpRuleRecord, frozen=True, kw_only=True):
    """A rule or custom pattern. The id is optional, because it is not used and a user may have edited the file."""

    id: str = ""


class ImportedBundleRecord(BundleRecord, frozen=True, kw_only=True):
    id: UUID | None = None  # type: ignore[assignment]


class ImportedFilter(FilterRecord, frozen=True, kw_only=True):
    id: UUID | None = None  # type: ignore[assignment]


#: Maps fields of request bodies to their names in the document, where they differ.
_DOCUMENT_NAMES: Final = {
    "detector_name": "name",
    "action_tier": "action",
    "confidence_threshold": "threshold",
    "context_words": "context",
    "seed_rule_mappings": "entity_types",
    "regulatory_framework": "framework",
    "config_json.threshold": "label_threshold",
}


class InvalidRecord(Exception):
    """A record of the document is invalid. `path` is relative to the record."""

    def __init__(self, path: str, message: str) -> None:
        super().__init__(path, message)
        self.path, self.message = path, message


def parse(record_type: type[R], raw: Mapping[str, Any]) -> R:
    """Convert a raw record. Raises `InvalidRecord`."""
    try:
        return msgspec.convert(raw, record_type)
    except msgspec.ValidationError as error:
        message, _, path = str(error).partition(" - at `$")
        raise InvalidRecord(path.rstrip("`"), message) from None


def new_rule(record: ImportedRule) -> NewDlpRule:
    """Return the body of a DLP rule. Raises `InvalidRecord`."""
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


def new_pattern(record: ImportedRule) -> NewCustomPattern:
    """Return the body of a custom pattern. Raises `InvalidRecord`."""
    return _body(
        NewCustomPattern,
        name=record.name,
        entity_type=record.entity_type,
        pattern=record.pattern,
        action_tier=record.action,
        confidence_threshold=record.threshold,
        context_words=list(record.context),
    )


def new_bundle(record: ImportedBundleRecord) -> NewBundle:
    """Return the body of a compliance bundle. Raises `InvalidRecord`."""
    return _body(
        NewBundle,
        name=record.name,
        regulatory_framework=record.framework,
        version=record.version,
        seed_rule_mappings=list(record.entity_types),
    )


def new_filter(record: ImportedFilter) -> NewContentFilter:
    """Return the body of a content filter. Raises `InvalidRecord`."""
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


def invalid_record(error: Refusal) -> InvalidRecord:
    """Convert a family's refusal to an error with the field names of the document."""
    if isinstance(error, Unprocessable) and error.faults:
        return _invalid_field(error.faults[0])
    return InvalidRecord("", error.text)


def _body(body_type: type[B], **values: Any) -> B:
    try:
        return body_type.model_validate(values)
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        field = ".".join(map(str, first["loc"]))
        raise _invalid_field(FieldFault(field, str(first["msg"]).removeprefix("Value error, "))) from None


def _invalid_field(fault: FieldFault) -> InvalidRecord:
    path = _DOCUMENT_NAMES.get(fault.field)
    if path is None:
        name, _, subpath = fault.field.removeprefix("config_json.").removeprefix("config.").partition(".")
        path = ".".join(filter(None, (_DOCUMENT_NAMES.get(name, name), subpath)))
    return InvalidRecord(f".{path}", fault.message)
