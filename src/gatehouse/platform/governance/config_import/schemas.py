"""Bodies of the import (decisions 8, Config import; decisions 9, Admin)."""

import re
from typing import Annotated, Any

from pydantic import AfterValidator, ConfigDict, Field

from gatehouse.foundation.http.bodies import Body, Shown
from gatehouse.platform.governance.dlp_fields import MOST

Records = Annotated[list[dict[str, Any]], Field(max_length=MOST)]
Id = Annotated[str, Field(max_length=255)]


def _known(version: str) -> str:
    if re.fullmatch(r"1\.[0-9]{1,9}", version) is None:
        raise ValueError("must be 1.0, or a later one of 1.x")
    return version


class ExportedConfig(Body):
    """As it was exported. Parts that this version does not know are told as skipped."""

    model_config = ConfigDict(extra="allow")

    version: Annotated[str, AfterValidator(_known), Field(examples=["1.0"])]
    patterns: Annotated[list[Id], Field(max_length=10_000)] = Field(default_factory=list, examples=[["email"]])
    dlp_rules: Records = Field(default_factory=list)
    custom_patterns: Records = Field(default_factory=list)
    suppressions: Annotated[list[Id], Field(max_length=MOST)] = Field(default_factory=list)
    group_overrides: dict[str, dict[str, str]] = Field(default_factory=dict, max_length=MOST)
    compliance_bundles: Records = Field(default_factory=list)
    content_filters: Records = Field(default_factory=list)
    overrides: dict[str, Any] = Field(default_factory=dict)


class ConfigImport(Body):
    config: ExportedConfig
    dry_run: Annotated[bool, Field(description="Only tells what would be done.")] = False


class Imported(Shown):
    part: Annotated[str, Field(examples=["dlp_rules"])]
    name: str


class Skipped(Imported):
    reason: str


class Fault(Shown):
    where: Annotated[str, Field(description="In the document.", examples=["custom_patterns[2].pattern"])]
    message: str


class ConfigImported(Shown):
    dry_run: bool
    standard_patterns: Annotated[int, Field(description="Of `patterns`, how many are the standard set's: it is here.")]
    imported: list[Imported]
    skipped: list[Skipped]
    missing_patterns: Annotated[
        list[str],
        Field(description="Named by `patterns` or by a rule, and nowhere in the document: to be made by hand."),
    ]
    errors: list[Fault]
