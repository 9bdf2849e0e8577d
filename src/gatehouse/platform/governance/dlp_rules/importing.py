"""Taking over rules from another organization's export (reference 3, Endpoints, DLP rules: import)."""

import asyncio
from collections import Counter, deque
from collections.abc import Sequence
from typing import Any, NamedTuple

from pydantic import ValidationError

from gatehouse.detection.entities.offered import Recognisers
from gatehouse.foundation.errors import FieldFault, Unprocessable
from gatehouse.foundation.storage.locks import ScopedLock, acquire_scoped
from gatehouse.platform.change import Change
from gatehouse.platform.governance import checked_patterns
from gatehouse.platform.governance.dlp_fields import MOST
from gatehouse.platform.governance.dlp_rules import service
from gatehouse.platform.governance.dlp_rules.errors import NameTwice, TooManyRules
from gatehouse.platform.governance.dlp_rules.schemas import (
    DlpRule,
    DlpRulesImport,
    DlpRulesImported,
    ImportFault,
    NewDlpRule,
)
from gatehouse.platform.governance.dlp_rules.table import DlpRuleRow, all_rules

SUFFIX = "_imported"


class _Read(NamedTuple):
    place: int
    rule: NewDlpRule


async def take_over(change: Change, body: DlpRulesImport, recognisers: Recognisers) -> DlpRulesImported:
    """Rules that are good are imported, the others told about. `skip` leaves out names that there are, `rename` adds a
    suffix until the name is free. Where several have a name, `overwrite` goes by their order: the first in the file
    changes the oldest, the second the next, so that an organization's own export changes nothing.

    Raises `NameTwice` in `skip` mode, and `TooManyRules`; then nothing is imported.
    """
    read, faults = await asyncio.to_thread(_read, body.rules, recognisers)
    if body.conflict_mode == "skip":
        _refuse_twice(read)
    #: by name, those that no rule of the file has taken yet
    known: dict[str, deque[DlpRuleRow]] = {}
    await acquire_scoped(change.session, ScopedLock.DLP_RULES, str(change.tenant_id))
    rows = await all_rules(change.session, lock=True)
    for row in rows:
        known.setdefault(row.detector_name, deque()).append(row)
    skipped = 0
    imported: list[DlpRuleRow] = []
    for place, rule in read:
        there = known.get(rule.detector_name)
        if there and body.conflict_mode == "skip":
            skipped += 1
        elif there and body.conflict_mode == "overwrite":
            row = there.popleft()
            service.changed(change, row, rule.model_dump())
            imported.append(row)
        else:
            name = rule.detector_name
            while body.conflict_mode == "rename" and name in known:
                name += SUFFIX
            if len(name) > 255:
                faults.append(ImportFault(index=place, detector_name=rule.detector_name, error="the name is too long"))
                continue
            known.setdefault(name, deque())
            imported.append(service.added(change, rule.model_copy(update={"detector_name": name})))
    if len({row.id for row in [*rows, *imported]}) > MOST:
        raise TooManyRules
    if imported:
        names = [row.detector_name for row in imported]
        change.record("dlp_rule.imported", "dlp_rule", imported=len(imported), skipped=skipped, names=names)
        service.touch(change)
    faults.sort(key=lambda fault: fault.index)
    shown = [DlpRule.model_validate(row) for row in imported]
    return DlpRulesImported(imported=len(imported), skipped=skipped, errors=faults, rules=shown)


def _read(rules: Sequence[dict[str, Any]], recognisers: Recognisers) -> tuple[list[_Read], list[ImportFault]]:
    read: dict[int, NewDlpRule] = {}
    faults: dict[int, str] = {}
    patterns: list[tuple[str, str]] = []
    for index, raw in enumerate(rules):
        try:
            rule = NewDlpRule.model_validate(raw)
            if (pattern := service.pattern_of(rule, recognisers)) is not None:
                patterns.append((str(index), pattern))
        except ValidationError as error:
            first = error.errors(include_url=False, include_input=False)[0]
            place = ".".join(map(str, first["loc"]))
            faults[index] = f"{place}: {first['msg'].removeprefix('Value error, ')}"
        except Unprocessable as error:
            faults[index] = _sentence(error.faults[0])
        else:
            read[index] = rule
    for fault in checked_patterns.faults(patterns):
        faults[int(fault.field)] = f"config_json.pattern: {fault.message}"
    good = [_Read(index, rule) for index, rule in read.items() if index not in faults]
    return good, [
        ImportFault(index=index, detector_name=_name(rules[index]), error=told) for index, told in faults.items()
    ]


def _refuse_twice(read: Sequence[_Read]) -> None:
    names = Counter(rule.detector_name for _, rule in read)
    twice = next((name for name, times in names.items() if times > 1), None)
    if twice is not None:
        raise NameTwice(twice)


def _sentence(fault: FieldFault) -> str:
    return f"{fault.field}: {fault.message}"


def _name(raw: dict[str, Any]) -> str | None:
    name = raw.get("detector_name")
    # A name that is no Unicode (half a surrogate pair) cannot be told as it came.
    return name[:255].encode(errors="replace").decode() if isinstance(name, str) else None
