"""The rules of the import."""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from itertools import islice
from typing import Any, Final
from uuid import UUID

from gatehouse.detection.catalog import BUILT_IN
from gatehouse.detection.entities.offered import Recognisers
from gatehouse.foundation.errors import Refusal
from gatehouse.foundation.storage.locks import ScopedLock, acquire_scoped
from gatehouse.platform.access.groups import service as groups
from gatehouse.platform.access.groups.schemas import NewOverride
from gatehouse.platform.access.groups.table import GroupRow, overrides_of
from gatehouse.platform.change import Change
from gatehouse.platform.governance.compliance_bundles import service as bundles
from gatehouse.platform.governance.compliance_bundles.table import all_bundles
from gatehouse.platform.governance.config_import import records
from gatehouse.platform.governance.config_import.records import Bundle, Filter, Misplaced, Rule
from gatehouse.platform.governance.config_import.schemas import (
    ConfigImport,
    ConfigImported,
    ExportedConfig,
    Fault,
    Imported,
    Skipped,
)
from gatehouse.platform.governance.content_filters import service as filters
from gatehouse.platform.governance.content_filters.table import all_filters
from gatehouse.platform.governance.dlp_customization import service as customization
from gatehouse.platform.governance.dlp_customization.schemas import NewSuppression
from gatehouse.platform.governance.dlp_customization.table import all_patterns, all_suppressions
from gatehouse.platform.governance.dlp_rules import service as rules
from gatehouse.platform.governance.dlp_rules.table import all_rules
from gatehouse.platform.organization.tenants.table import TenantRecord

_STANDARD: Final = frozenset(pattern.id for pattern in BUILT_IN)
_STANDARD_TYPES: Final = frozenset(pattern.entity_type for pattern in BUILT_IN)
#: Of the document itself.
_HEADING: Final = frozenset({"exported_at", "outpost_id", "policy_version"})
#: Of as many parts that this version does not know it is told.
_MOST_UNKNOWN: Final = 100
_THERE: Final = "one of this name is here already"
_NO_GROUP: Final = "its group is not here"
_REASON: Final = "imported from an outpost"


async def take_over(
    change: Change, tenant: TenantRecord, body: ConfigImport, recognisers: Recognisers
) -> ConfigImported:
    """Into the organization, in the change's transaction; of a dry run nothing is left."""
    async with change.inside(tenant.id) as inside:
        if not body.dry_run:
            found = await _Import(inside, body.config, recognisers).run()
            inside.record(
                "config.imported",
                "tenant",
                tenant.id,
                imported=len(found.imported),
                skipped=len(found.skipped),
                errors=len(found.errors),
                missing_patterns=found.missing_patterns,
            )
            return found
        # What this one would record and tell goes nowhere.
        trial = Change(inside.session, inside.caller, tenant_id=tenant.id)
        undone = await inside.session.begin_nested()
        try:
            found = await _Import(trial, body.config, recognisers).run()
        finally:
            await undone.rollback()
        return found.model_copy(update={"dry_run": True})


class _Import:
    """One document on its way in."""

    def __init__(self, change: Change, config: ExportedConfig, recognisers: Recognisers) -> None:
        self._change = change
        self._recognisers = recognisers
        self._config = config
        self._imported: list[Imported] = []
        self._skipped: list[Skipped] = []
        self._errors: list[Fault] = []
        self._missing: dict[str, None] = {}

    async def run(self) -> ConfigImported:
        config, session = self._config, self._change.session
        # Custom patterns first: rules and overrides speak of what they find.
        await self._each("custom_patterns", config.custom_patterns, await all_patterns(session), self._pattern)
        await self._find_missing()
        # Before the rows: an import of rules takes the two locks in this order.
        await acquire_scoped(session, ScopedLock.DLP_RULES, str(self._change.tenant_id))
        known_rules = await all_rules(session, lock=True)
        await self._each("dlp_rules", config.dlp_rules, known_rules, self._rule, name="detector_name")
        await self._suppress()
        await self._each("compliance_bundles", config.compliance_bundles, await all_bundles(session), self._bundle)
        await self._each("content_filters", config.content_filters, await all_filters(session), self._filter)
        await self._override()
        for part in islice(config.model_extra or {}, _MOST_UNKNOWN):
            if part not in _HEADING:
                self._skip(part[:100], "", "unknown to this version")
        if any(config.overrides.values()):
            self._skip("overrides", "", "the outpost's own: it keeps them")
        return ConfigImported(
            dry_run=False,
            standard_patterns=len(_STANDARD & set(config.patterns)),
            imported=self._imported,
            skipped=self._skipped,
            missing_patterns=list(self._missing),
            errors=self._errors,
        )

    async def _each(
        self,
        part: str,
        raw: Sequence[Mapping[str, Any]],
        there: Sequence[Any],
        make: Callable[[Mapping[str, Any]], Awaitable[str | None]],
        *,
        name: str = "name",
    ) -> None:
        """`make` gives the reason why one is left out, or None."""
        known = {getattr(row, name) for row in there}
        for place, record in enumerate(raw):
            # A name that is no Unicode (half a surrogate pair) cannot be told as it came.
            called = str(record.get("name", "")).strip()[:255].encode(errors="replace").decode()
            if called in known:
                self._skip(part, called, _THERE)
                continue
            try:
                async with self._change.attempt():
                    reason = await make(record)
            except (Misplaced, Refusal) as error:
                self._fault(f"{part}[{place}]", error)
                continue
            if reason is None:
                self._imported.append(Imported(part=part, name=called))
            else:
                self._skip(part, called, reason)

    async def _pattern(self, raw: Mapping[str, Any]) -> None:
        await customization.create(self._change, records.new_pattern(records.of(Rule, raw)))

    async def _rule(self, raw: Mapping[str, Any]) -> str | None:
        record = records.of(Rule, raw)
        if record.entity_type in self._missing and record.pattern is None:
            return "it speaks of a pattern that is missing"
        await rules.create(self._change, records.new_rule(record), self._recognisers)
        return None

    async def _bundle(self, raw: Mapping[str, Any]) -> str | None:
        record = records.of(Bundle, raw)
        if not record.framework:
            return "the document does not say of which framework it is"
        await bundles.create(self._change, records.new_bundle(record))
        return None

    async def _filter(self, raw: Mapping[str, Any]) -> str | None:
        record = records.of(Filter, raw)
        if record.group_id is not None and await self._change.session.get(GroupRow, record.group_id) is None:
            return _NO_GROUP
        await filters.create(self._change, records.new_filter(record))
        return None

    async def _find_missing(self) -> None:
        """What is named and defined nowhere: neither here, nor in the document."""
        there = await all_patterns(self._change.session)
        names = {row.name for row in there} | {row.entity_type for row in there}
        # Be one of them not good: then it is an error, and not missing.
        names |= {str(each.get(key)) for each in self._config.custom_patterns for key in ("name", "entity_type", "id")}
        for pattern in self._config.patterns:
            if pattern not in _STANDARD and pattern not in names:
                self._missing[pattern] = None
        for rule in self._config.dlp_rules:
            by_name = rule.get("detector_type") == "regex" and rule.get("pattern") is None
            entity_type = rule.get("entity_type")
            if by_name and isinstance(entity_type, str) and entity_type not in _STANDARD_TYPES | names:
                self._missing[entity_type[:100]] = None

    async def _suppress(self) -> None:
        there = {row.pattern_id for row in await all_suppressions(self._change.session)}
        for place, pattern_id in enumerate(self._config.suppressions):
            if pattern_id in there:
                self._skip("suppressions", pattern_id, "it is switched off here already")
                continue
            try:
                async with self._change.attempt():
                    await customization.suppress(self._change, NewSuppression(pattern_id=pattern_id, reason=_REASON))
                self._imported.append(Imported(part="suppressions", name=pattern_id))
                there.add(pattern_id)
            except (Refusal, ValueError) as error:
                self._fault(f"suppressions[{place}]", error)

    async def _override(self) -> None:
        session = self._change.session
        for named, actions in self._config.group_overrides.items():
            try:
                group = await session.get(GroupRow, UUID(named), with_for_update=True)
            except ValueError:
                group = None
            if group is None:
                self._skip("group_overrides", named[:100], _NO_GROUP)
            elif await overrides_of(session, group.id):
                self._skip("group_overrides", group.name, "the group has overrides here already")
            else:
                await self._override_group(group, actions)

    async def _override_group(self, group: GroupRow, actions: Mapping[str, str]) -> None:
        try:
            wanted = [NewOverride.model_validate({"entity_type": k, "action": v}) for k, v in actions.items()]
            async with self._change.attempt():
                await groups.replace_overrides(self._change, group, wanted)
            self._imported.append(Imported(part="group_overrides", name=group.name))
        except (Refusal, ValueError) as error:
            self._fault(f"group_overrides.{group.id}", error)

    def _skip(self, part: str, name: str, reason: str) -> None:
        self._skipped.append(Skipped(part=part, name=name, reason=reason))

    def _fault(self, where: str, error: Exception) -> None:
        found = records.told(error) if isinstance(error, Refusal) else error
        if isinstance(found, Misplaced):
            self._errors.append(Fault(where=where + found.place, message=found.message))
        else:
            self._errors.append(Fault(where=where, message="is not one that this version knows"))
