"""Imports an outpost's configuration."""

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
from gatehouse.platform.changes.change import Change
from gatehouse.platform.governance.compliance_bundles import service as bundles
from gatehouse.platform.governance.compliance_bundles.table import all_bundles
from gatehouse.platform.governance.config_import import records
from gatehouse.platform.governance.config_import.records import (
    ImportedBundleRecord,
    ImportedFilter,
    ImportedRule,
    InvalidRecord,
)
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

_BUILT_IN_IDS: Final = frozenset(pattern.id for pattern in BUILT_IN)
_BUILT_IN_TYPES: Final = frozenset(pattern.entity_type for pattern in BUILT_IN)
#: Fields with metadata of the document, which are not imported.
_METADATA_FIELDS: Final = frozenset({"exported_at", "outpost_id", "policy_version"})
#: Maximum unknown parts that the report lists.
_MAX_UNKNOWN_PARTS: Final = 100
_NAME_EXISTS: Final = "a record of this name already exists"
_NO_GROUP: Final = "its group does not exist"
_SUPPRESSION_REASON: Final = "imported from an outpost"


async def import_config(
    change: Change, tenant: TenantRecord, body: ConfigImport, recognisers: Recognisers
) -> ConfigImported:
    """Import the configuration into the organization, in the transaction of `change`. A dry run is rolled back."""
    async with change.inside(tenant.id) as tenant_change:
        if not body.dry_run:
            result = await _Import(tenant_change, body.config, recognisers).run()
            tenant_change.record(
                "config.imported",
                "tenant",
                tenant.id,
                imported=len(result.imported),
                skipped=len(result.skipped),
                errors=len(result.errors),
                missing_patterns=result.missing_patterns,
            )
            return result
        # A dry run uses a separate change, whose audit events and notifications are discarded.
        trial = Change(tenant_change.session, tenant_change.caller, tenant_id=tenant.id)
        savepoint = await tenant_change.session.begin_nested()
        try:
            result = await _Import(trial, body.config, recognisers).run()
        finally:
            await savepoint.rollback()
        return result.model_copy(update={"dry_run": True})


class _Import:
    """One run of the import."""

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
        # Custom patterns are imported first, because rules and overrides refer to their entity types.
        await self._import_records(
            "custom_patterns", config.custom_patterns, await all_patterns(session), self._create_pattern
        )
        await self._find_missing()
        # This lock is taken before the locks of the rows, in the same order as in the import of rules.
        await acquire_scoped(session, ScopedLock.DLP_RULES, str(self._change.tenant_id))
        existing_rules = await all_rules(session, lock=True)
        await self._import_records(
            "dlp_rules", config.dlp_rules, existing_rules, self._create_rule, name_field="detector_name"
        )
        await self._import_suppressions()
        await self._import_records(
            "compliance_bundles", config.compliance_bundles, await all_bundles(session), self._create_bundle
        )
        await self._import_records(
            "content_filters", config.content_filters, await all_filters(session), self._create_filter
        )
        await self._import_overrides()
        for part in islice(config.model_extra or {}, _MAX_UNKNOWN_PARTS):
            if part not in _METADATA_FIELDS:
                self._skip(part[:100], "", "unknown to this version")
        if any(config.overrides.values()):
            self._skip("overrides", "", "local to the outpost")
        return ConfigImported(
            dry_run=False,
            standard_patterns=len(_BUILT_IN_IDS & set(config.patterns)),
            imported=self._imported,
            skipped=self._skipped,
            missing_patterns=list(self._missing),
            errors=self._errors,
        )

    async def _import_records(
        self,
        part: str,
        raw: Sequence[Mapping[str, Any]],
        existing: Sequence[Any],
        create: Callable[[Mapping[str, Any]], Awaitable[str | None]],
        *,
        name_field: str = "name",
    ) -> None:
        """Import the records of one part. `create` returns the reason for skipping a record, or None if it has created
        the record."""
        existing_names = {getattr(row, name_field) for row in existing}
        for index, record in enumerate(raw):
            # A lone surrogate cannot be encoded as UTF-8, so it is replaced.
            name = str(record.get("name", "")).strip()[:255].encode(errors="replace").decode()
            if name in existing_names:
                self._skip(part, name, _NAME_EXISTS)
                continue
            try:
                async with self._change.attempt():
                    reason = await create(record)
            except (InvalidRecord, Refusal) as error:
                self._fault(f"{part}[{index}]", error)
                continue
            if reason is None:
                self._imported.append(Imported(part=part, name=name))
            else:
                self._skip(part, name, reason)

    async def _create_pattern(self, raw: Mapping[str, Any]) -> None:
        await customization.create(self._change, records.new_pattern(records.parse(ImportedRule, raw)))

    async def _create_rule(self, raw: Mapping[str, Any]) -> str | None:
        record = records.parse(ImportedRule, raw)
        if record.entity_type in self._missing and record.pattern is None:
            return "it refers to a missing pattern"
        await rules.create(self._change, records.new_rule(record), self._recognisers)
        return None

    async def _create_bundle(self, raw: Mapping[str, Any]) -> str | None:
        record = records.parse(ImportedBundleRecord, raw)
        if not record.framework:
            return "the document does not name its framework"
        await bundles.create(self._change, records.new_bundle(record))
        return None

    async def _create_filter(self, raw: Mapping[str, Any]) -> str | None:
        record = records.parse(ImportedFilter, raw)
        if record.group_id is not None and await self._change.session.get(GroupRow, record.group_id) is None:
            return _NO_GROUP
        await filters.create(self._change, records.new_filter(record))
        return None

    async def _find_missing(self) -> None:
        """Collect the patterns that do not exist: they are not built in, and neither the organization nor the document
        defines them. Also collect the entity type of each rule without a pattern of its own, if no pattern detects that
        type."""
        existing = await all_patterns(self._change.session)
        names = {row.name for row in existing} | {row.entity_type for row in existing}
        # An invalid custom pattern of the document is reported as an error, not as missing.
        fields = ("name", "entity_type", "id")
        names |= {str(pattern.get(field)) for pattern in self._config.custom_patterns for field in fields}
        for pattern_id in self._config.patterns:
            if pattern_id not in _BUILT_IN_IDS and pattern_id not in names:
                self._missing[pattern_id] = None
        for rule in self._config.dlp_rules:
            has_no_pattern = rule.get("detector_type") == "regex" and rule.get("pattern") is None
            entity_type = rule.get("entity_type")
            if has_no_pattern and isinstance(entity_type, str) and entity_type not in _BUILT_IN_TYPES | names:
                self._missing[entity_type[:100]] = None

    async def _import_suppressions(self) -> None:
        suppressed = {row.pattern_id for row in await all_suppressions(self._change.session)}
        for index, pattern_id in enumerate(self._config.suppressions):
            if pattern_id in suppressed:
                self._skip("suppressions", pattern_id, "it is already suppressed")
                continue
            try:
                async with self._change.attempt():
                    await customization.suppress(
                        self._change, NewSuppression(pattern_id=pattern_id, reason=_SUPPRESSION_REASON)
                    )
                self._imported.append(Imported(part="suppressions", name=pattern_id))
                suppressed.add(pattern_id)
            except (Refusal, ValueError) as error:
                self._fault(f"suppressions[{index}]", error)

    async def _import_overrides(self) -> None:
        session = self._change.session
        for group_id, actions in self._config.group_overrides.items():
            try:
                group = await session.get(GroupRow, UUID(group_id), with_for_update=True)
            except ValueError:
                group = None
            if group is None:
                self._skip("group_overrides", group_id[:100], _NO_GROUP)
            elif await overrides_of(session, group.id):
                self._skip("group_overrides", group.name, "the group already has overrides")
            else:
                await self._import_group_overrides(group, actions)

    async def _import_group_overrides(self, group: GroupRow, actions: Mapping[str, str]) -> None:
        try:
            overrides = [NewOverride.model_validate({"entity_type": k, "action": v}) for k, v in actions.items()]
            async with self._change.attempt():
                await groups.replace_overrides(self._change, group, overrides)
            self._imported.append(Imported(part="group_overrides", name=group.name))
        except (Refusal, ValueError) as error:
            self._fault(f"group_overrides.{group.id}", error)

    def _skip(self, part: str, name: str, reason: str) -> None:
        self._skipped.append(Skipped(part=part, name=name, reason=reason))

    def _fault(self, where: str, error: Exception) -> None:
        if isinstance(error, Refusal):
            error = records.invalid_record(error)
        if isinstance(error, InvalidRecord):
            self._errors.append(Fault(where=where + error.path, message=error.message))
        else:
            self._errors.append(Fault(where=where, message="is unknown to this version"))
