"""Exports and imports the active DLP configuration as a document. An operator can read it, use it as a backup, or
move it to the cloud (docs/moving-to-the-cloud.md)."""

import time
from typing import Annotated, Any, Final

import msgspec
from fastapi import APIRouter, Query
from pydantic import BaseModel, ConfigDict, Field

from gatehouse.detection.catalog import BUILT_IN
from gatehouse.foundation.clock import iso
from gatehouse.foundation.errors import FieldFault, Unprocessable
from gatehouse.foundation.http.bodies import Body, ResponseBody, omitted
from gatehouse.outpost.admin.access import AuthorizedHost
from gatehouse.outpost.admin.overrides import Disabled, Routes, without_empty
from gatehouse.outpost.admin.recording import Recorder
from gatehouse.outpost.admin.versions import Changing
from gatehouse.outpost.host import OutpostHost
from gatehouse.outpost.policy.bundle import InForce, NotLoaded
from gatehouse.policy.governance import DlpRuleRecord

router = APIRouter(tags=["Configuration"])

VERSION: Final = "1.0"
#: Parts of the document that belong to the platform's policy. They are changed at the platform, and arrive with the
#: next bundle.
_PLATFORM_PARTS: Final = (
    "patterns", "dlp_rules", "custom_patterns", "suppressions", "group_overrides", "compliance_bundles",
    "content_filters",
)  # fmt: skip


class Exported(ResponseBody):
    version: Annotated[str, Field(description="Version of the document's format.")]
    exported_at: str
    outpost_id: str
    policy_version: int
    patterns: Annotated[list[str], Field(description="Ids of the built-in patterns that are active.")]
    dlp_rules: list[dict[str, Any]]
    custom_patterns: list[dict[str, Any]]
    suppressions: Annotated[list[str], Field(description="Ids of built-in patterns that are disabled.")]
    group_overrides: dict[str, dict[str, str]]
    compliance_bundles: list[dict[str, Any]]
    content_filters: list[dict[str, Any]]
    overrides: dict[str, Any]


class Imported(ResponseBody):
    """The result of an import. `imported` and `skipped` name parts of the document; `skipped` also has the reasons."""

    dry_run: bool
    imported: list[str]
    skipped: dict[str, str]


class ImportedOverrides(Body):
    """Replaces all overrides. A part that is omitted becomes empty."""

    disabled: Disabled = Field(default_factory=dict)
    routes: Routes = Field(default_factory=dict)


class Import(BaseModel):
    """An exported document. Parts that are unknown to this version are skipped and named in the response."""

    model_config = ConfigDict(extra="allow")

    version: Annotated[str, Field(max_length=20)]
    overrides: ImportedOverrides = Field(default_factory=omitted)


@router.get("/admin/config/export", response_model=Exported)
async def export_config(host: AuthorizedHost) -> Exported:
    """Returns the active DLP configuration, without credentials. Answers 503
    `service_unavailable` while no policy is loaded."""
    if host.bundles.in_force is None:
        raise NotLoaded
    return _exported(host, host.bundles.in_force)


@router.post("/admin/config/import", response_model=Imported)
async def import_config(
    host: AuthorizedHost,
    change: Changing,
    recorder: Recorder,
    body: Import,
    dry_run: Annotated[bool, Query(description="Only report what would be imported.")] = False,
) -> Imported:
    """Imports the overrides, which are the only part of the document that belongs to the outpost. The other parts
    belong to the platform and are named in `skipped`."""
    if body.version.partition(".")[0] != VERSION.partition(".")[0]:
        raise Unprocessable(faults=[FieldFault("version", f"must be {VERSION}, or a later one of {VERSION[0]}.x")])
    other_parts = body.model_extra or {}
    imported, skipped = [], {}
    for name in other_parts:
        if name in _PLATFORM_PARTS:
            skipped[name] = "belongs to the platform's policy: import it there"
        elif name not in {"exported_at", "outpost_id", "policy_version"}:
            skipped[name[:100]] = "unknown to this version"
    if "overrides" in body.model_fields_set:
        if not dry_run:
            disabled = without_empty(body.overrides.disabled)
            await host.override(disabled=disabled, routes=body.overrides.routes)
            await recorder.record("config_import", disabled=len(disabled), routes=len(body.overrides.routes))
        imported.append("overrides")
    return Imported(dry_run=dry_run, imported=imported, skipped=skipped)


def _exported(host: OutpostHost, in_force: InForce) -> Exported:
    records = in_force.bundle.policy.governance
    enabled = in_force.snapshot.dlp.enabled
    return Exported(
        version=VERSION,
        exported_at=iso(time.time()),
        outpost_id=str(host.id),
        policy_version=in_force.bundle.version,
        patterns=[pattern.id for pattern in BUILT_IN if enabled and pattern.id in in_force.snapshot.dlp.patterns],
        dlp_rules=[_rule(rule) for rule in records.dlp_rules if not rule.custom],
        custom_patterns=[_rule(rule) for rule in records.dlp_rules if rule.custom],
        suppressions=sorted(records.suppressions),
        group_overrides={str(group): dict(actions) for group, actions in records.overrides.items()},
        compliance_bundles=[msgspec.to_builtins(bundle) for bundle in records.bundles],
        content_filters=[msgspec.to_builtins(content_filter) for content_filter in records.filters],
        overrides=msgspec.to_builtins(host.state.current.overrides, order="sorted"),
    )


def _rule(record: DlpRuleRecord) -> dict[str, Any]:
    fields: dict[str, Any] = msgspec.to_builtins(record)
    del fields["custom"]
    return fields
