"""The DLP configuration that is in force here, as a document: for a look, a backup, or the move to the cloud (reference
1, What the service does, 8)."""

import time
from typing import Annotated, Any, Final

import msgspec
from fastapi import APIRouter, Query
from pydantic import BaseModel, ConfigDict, Field

from gatehouse.detection.catalog import BUILT_IN
from gatehouse.foundation.clock import iso
from gatehouse.foundation.errors import FieldFault, Unprocessable
from gatehouse.foundation.http.bodies import Body, Shown, unsent
from gatehouse.outpost.admin.access import Operated
from gatehouse.outpost.admin.overrides import Disabled, Routes, out
from gatehouse.outpost.admin.recording import Recorder
from gatehouse.outpost.bundle import InForce, NotLoaded
from gatehouse.outpost.host import OutpostHost
from gatehouse.policy.governance import DlpRuleRecord

router = APIRouter(tags=["Configuration"])

VERSION: Final = "1.0"
#: What comes with the platform's policy: it is changed there, and comes with the next bundle.
_OF_THE_PLATFORM: Final = (
    "patterns", "dlp_rules", "custom_patterns", "suppressions", "group_overrides", "compliance_bundles",
    "content_filters",
)  # fmt: skip


class Exported(Shown):
    version: Annotated[str, Field(description="Of this form.")]
    exported_at: str
    outpost_id: str
    policy_version: int
    patterns: Annotated[list[str], Field(description="Ids of the standard set's patterns that are in force.")]
    dlp_rules: list[dict[str, Any]]
    custom_patterns: list[dict[str, Any]]
    suppressions: Annotated[list[str], Field(description="Ids of standard patterns that are switched off.")]
    group_overrides: dict[str, dict[str, str]]
    compliance_bundles: list[dict[str, Any]]
    content_filters: list[dict[str, Any]]
    overrides: dict[str, Any]


class Imported(Shown):
    """`imported` and `skipped` name the document's parts."""

    dry_run: bool
    imported: list[str]
    skipped: dict[str, str]


class ImportedOverrides(Body):
    """Replaces all of them; what is left out is none."""

    disabled: Disabled = Field(default_factory=dict)
    routes: Routes = Field(default_factory=dict)


class Import(BaseModel):
    """A document as it was exported. What this version does not know is skipped, by its name."""

    model_config = ConfigDict(extra="allow")

    version: Annotated[str, Field(max_length=20)]
    overrides: ImportedOverrides = Field(default_factory=unsent)


@router.get("/admin/config/export", response_model=Exported)
async def export_config(host: Operated) -> Exported:
    """Holds no credential of anybody. 503 `service_unavailable` while no policy is loaded."""
    if host.bundles.in_force is None:
        raise NotLoaded
    return _exported(host, host.bundles.in_force)


@router.post("/admin/config/import", response_model=Imported)
async def import_config(
    host: Operated,
    recorder: Recorder,
    body: Import,
    dry_run: Annotated[bool, Query(description="Only tells what would be done.")] = False,
) -> Imported:
    """Takes what is this outpost's own, its overrides. Rules are the platform's: they are named as skipped."""
    if body.version.partition(".")[0] != VERSION.partition(".")[0]:
        raise Unprocessable(faults=[FieldFault("version", f"must be {VERSION}, or a later one of {VERSION[0]}.x")])
    sent = body.model_extra or {}
    imported, skipped = [], {}
    for name in sent:
        if name in _OF_THE_PLATFORM:
            skipped[name] = "comes with the platform's policy: import it there"
        elif name not in {"exported_at", "outpost_id", "policy_version"}:
            skipped[name[:100]] = "unknown to this version"
    if "overrides" in body.model_fields_set:
        if not dry_run:
            disabled = out(body.overrides.disabled)
            await host.override(disabled=disabled, routes=body.overrides.routes)
            await recorder.record("config_import", disabled=len(disabled), routes=len(body.overrides.routes))
        imported.append("overrides")
    return Imported(dry_run=dry_run, imported=imported, skipped=skipped)


def _exported(host: OutpostHost, held: InForce) -> Exported:
    records = held.bundle.policy.governance
    enabled = held.snapshot.dlp.enabled
    return Exported(
        version=VERSION,
        exported_at=iso(time.time()),
        outpost_id=str(host.id),
        policy_version=held.bundle.version,
        patterns=[each.id for each in BUILT_IN if enabled and each.id in held.snapshot.dlp.patterns],
        dlp_rules=[_rule(each) for each in records.dlp_rules if not each.custom],
        custom_patterns=[_rule(each) for each in records.dlp_rules if each.custom],
        suppressions=sorted(records.suppressions),
        group_overrides={str(group): dict(actions) for group, actions in records.overrides.items()},
        compliance_bundles=[msgspec.to_builtins(each) for each in records.bundles],
        content_filters=[msgspec.to_builtins(each) for each in records.filters],
        overrides=msgspec.to_builtins(host.state.said.overrides, order="sorted"),
    )


def _rule(record: DlpRuleRecord) -> dict[str, Any]:
    found: dict[str, Any] = msgspec.to_builtins(record)
    del found["custom"]
    return found
