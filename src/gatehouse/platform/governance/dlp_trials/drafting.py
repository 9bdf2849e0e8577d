"""Validates and compiles drafts of an organization's DLP rules as if they were active."""

import asyncio
from typing import Final

import msgspec
from pydantic import ValidationError

from gatehouse.detection.catalog import BUILT_IN
from gatehouse.detection.entities.offered import Recognisers
from gatehouse.foundation.errors import FieldFault, Unprocessable
from gatehouse.platform.governance import checked_patterns
from gatehouse.platform.governance.dlp_rules import config
from gatehouse.platform.governance.dlp_rules.policy_records import record
from gatehouse.platform.governance.dlp_rules.schemas import NewDlpRule
from gatehouse.platform.governance.dlp_trials.schemas import Draft
from gatehouse.policy.dlp.compile import compile_dlp
from gatehouse.policy.dlp.compiled import DlpPolicy
from gatehouse.policy.governance import DlpRuleRecord
from gatehouse.policy.snapshot import Snapshot

_BUILT_IN_IDS: Final = frozenset(pattern.id for pattern in BUILT_IN)


async def compile_draft(draft: Draft, snapshot: Snapshot, recognisers: Recognisers) -> DlpPolicy:
    """Compile a draft. Raises `Unprocessable` with the names of the fields. The draft is compiled as if the feature
    flag `dlp_enabled` were on."""
    records = snapshot.dlp.records
    if draft.rules is not None:
        custom = tuple(rule for rule in records.dlp_rules if rule.custom)
        drafted = await asyncio.to_thread(_rules, draft.rules, recognisers)
        records = msgspec.structs.replace(records, dlp_rules=drafted + custom)
    if draft.add_rule is not None:
        try:
            added = await asyncio.to_thread(_rules, [draft.add_rule], recognisers)
        except Unprocessable as error:
            faults = [FieldFault(_added_rule_field(fault.field), fault.message) for fault in error.faults]
            raise Unprocessable(faults=faults) from None
        renamed = tuple(msgspec.structs.replace(rule, id="draft-added") for rule in added)
        records = msgspec.structs.replace(records, dlp_rules=records.dlp_rules + renamed)
    if draft.suppressions is not None:
        _require_built_in(draft.suppressions)
        records = msgspec.structs.replace(records, suppressions=frozenset(draft.suppressions))
    flags = {**snapshot.feature_flags, "dlp_enabled": True}
    policy, compile_faults = await asyncio.to_thread(compile_dlp, records, flags, snapshot.dlp)
    if compile_faults:
        raise Unprocessable(faults=[FieldFault("rules", fault) for fault in compile_faults])
    return policy


def _added_rule_field(field: str) -> str:
    return field.replace("rules.0", "add_rule", 1)


def _rules(drafted: list[dict[str, object]], recognisers: Recognisers) -> tuple[DlpRuleRecord, ...]:
    """Return the records of the enabled rules. Call it in a thread, because it blocks. Raises `Unprocessable`."""
    records: list[DlpRuleRecord] = []
    patterns: list[tuple[str, str]] = []
    faults: list[FieldFault] = []
    for index, raw in enumerate(drafted):
        try:
            rule = NewDlpRule.model_validate(raw)
            rule_config = config.read(rule, recognisers)
        except ValidationError as error:
            faults += [_fault(index, detail["loc"], detail["msg"]) for detail in error.errors(include_url=False)]
            continue
        except Unprocessable as error:
            faults += [FieldFault(f"rules.{index}.{fault.field}", fault.message) for fault in error.faults]
            continue
        if isinstance(rule_config, config.RegexConfig) and rule_config.pattern is not None:
            patterns.append((f"rules.{index}.config_json.pattern", rule_config.pattern))
        if rule.enabled:
            records.append(record(rule, f"draft-{index}"))
    faults += checked_patterns.faults(patterns)
    if faults:
        raise Unprocessable(faults=faults)
    return tuple(records)


def _fault(index: int, path: tuple[int | str, ...], message: str) -> FieldFault:
    return FieldFault(".".join(map(str, ("rules", index, *path))), message.removeprefix("Value error, "))


def _require_built_in(suppressions: list[str]) -> None:
    faults = [
        FieldFault(f"suppressions.{index}", f"{pattern_id!r} is not a built-in pattern")
        for index, pattern_id in enumerate(suppressions)
        if pattern_id not in _BUILT_IN_IDS
    ]
    if faults:
        raise Unprocessable(faults=faults)
