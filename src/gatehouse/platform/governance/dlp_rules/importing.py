"""Imports rules from an organization's export."""

import asyncio
from collections import Counter, deque
from collections.abc import Sequence
from typing import Any, NamedTuple

from pydantic import ValidationError

from gatehouse.detection.entities.offered import Recognisers
from gatehouse.foundation.errors import FieldFault, Unprocessable
from gatehouse.foundation.storage.locks import ScopedLock, acquire_scoped
from gatehouse.platform.changes.change import Change
from gatehouse.platform.governance import checked_patterns
from gatehouse.platform.governance.dlp_fields import MAX_RULES
from gatehouse.platform.governance.dlp_rules import service
from gatehouse.platform.governance.dlp_rules.schemas import (
    DlpRule,
    DlpRulesImport,
    DlpRulesImported,
    ImportFault,
    NewDlpRule,
)
from gatehouse.platform.governance.dlp_rules.service import DuplicateName, TooManyRules
from gatehouse.platform.governance.dlp_rules.table import DlpRuleRow, all_rules

RENAME_SUFFIX = "_imported"


class _IndexedRule(NamedTuple):
    """A valid rule and its position in the file."""

    position: int
    rule: NewDlpRule


async def import_rules(change: Change, body: DlpRulesImport, recognisers: Recognisers) -> DlpRulesImported:
    """Import the valid rules, and report the others in `errors`.

    `skip` leaves out rules whose name exists. `rename` appends a suffix until the name is unique. `overwrite` matches
    rules of the same name by position: the first rule in the file changes the oldest row, the second rule the next row.
    Importing an organization's own export therefore changes nothing.

    Raises `DuplicateName` in `skip` mode, and `TooManyRules`. After an error nothing is imported.
    """
    parsed_rules, faults = await asyncio.to_thread(_parse, body.rules, recognisers)
    if body.conflict_mode == "skip":
        _require_unique_names(parsed_rules)
    #: Existing rows by name that no rule of the file has matched yet.
    unmatched: dict[str, deque[DlpRuleRow]] = {}
    await acquire_scoped(change.session, ScopedLock.DLP_RULES, str(change.tenant_id))
    rows = await all_rules(change.session, lock=True)
    for row in rows:
        unmatched.setdefault(row.detector_name, deque()).append(row)
    skipped = 0
    imported: list[DlpRuleRow] = []
    for index, rule in parsed_rules:
        matches = unmatched.get(rule.detector_name)
        if matches and body.conflict_mode == "skip":
            skipped += 1
        elif matches and body.conflict_mode == "overwrite":
            row = matches.popleft()
            service.change_row(change, row, rule.model_dump())
            imported.append(row)
        else:
            name = rule.detector_name
            while body.conflict_mode == "rename" and name in unmatched:
                name += RENAME_SUFFIX
            if len(name) > 255:
                faults.append(ImportFault(index=index, detector_name=rule.detector_name, error="the name is too long"))
                continue
            unmatched.setdefault(name, deque())
            imported.append(service.add_row(change, rule.model_copy(update={"detector_name": name})))
    if len({row.id for row in [*rows, *imported]}) > MAX_RULES:
        raise TooManyRules
    if imported:
        names = [row.detector_name for row in imported]
        change.record("dlp_rule.imported", "dlp_rule", imported=len(imported), skipped=skipped, names=names)
        service.touch_policy(change)
    faults.sort(key=lambda fault: fault.index)
    shown = [DlpRule.model_validate(row) for row in imported]
    return DlpRulesImported(imported=len(imported), skipped=skipped, errors=faults, rules=shown)


def _parse(rules: Sequence[dict[str, Any]], recognisers: Recognisers) -> tuple[list[_IndexedRule], list[ImportFault]]:
    """Return the valid rules, and the faults of the others. Call it in a thread, because it blocks."""
    parsed: dict[int, NewDlpRule] = {}
    faults: dict[int, str] = {}
    patterns: list[tuple[str, str]] = []
    for index, raw in enumerate(rules):
        try:
            rule = NewDlpRule.model_validate(raw)
            if (pattern := service.pattern_of(rule, recognisers)) is not None:
                patterns.append((str(index), pattern))
        except ValidationError as error:
            first = error.errors(include_url=False, include_input=False)[0]
            field = ".".join(map(str, first["loc"]))
            faults[index] = f"{field}: {first['msg'].removeprefix('Value error, ')}"
        except Unprocessable as error:
            faults[index] = _fault_text(error.faults[0])
        else:
            parsed[index] = rule
    for fault in checked_patterns.faults(patterns):
        faults[int(fault.field)] = f"config_json.pattern: {fault.message}"
    valid = [_IndexedRule(index, rule) for index, rule in parsed.items() if index not in faults]
    return valid, [
        ImportFault(index=index, detector_name=_name(rules[index]), error=message) for index, message in faults.items()
    ]


def _require_unique_names(rules: Sequence[_IndexedRule]) -> None:
    """Check that no two rules have the same name. Raises `DuplicateName`."""
    counts = Counter(rule.detector_name for _, rule in rules)
    duplicate = next((name for name, count in counts.items() if count > 1), None)
    if duplicate is not None:
        raise DuplicateName(duplicate)


def _fault_text(fault: FieldFault) -> str:
    return f"{fault.field}: {fault.message}"


def _name(raw: dict[str, Any]) -> str | None:
    name = raw.get("detector_name")
    # A lone surrogate cannot be encoded as UTF-8, so it is replaced.
    return name[:255].encode(errors="replace").decode() if isinstance(name, str) else None
