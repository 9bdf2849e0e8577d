"""Bodies of the configuration import."""

import re
from typing import Annotated, Any

from pydantic import AfterValidator, ConfigDict, Field

from gatehouse.foundation.http.bodies import Body, ResponseBody
from gatehouse.platform.governance.dlp_fields import MAX_RULES

Records = Annotated[list[dict[str, Any]], Field(max_length=MAX_RULES)]
Id = Annotated[str, Field(max_length=255)]


def _require_supported(version: str) -> str:
    if re.fullmatch(r"1\.[0-9]{1,9}", version) is None:
        raise ValueError("must be 1.0, or a later one of 1.x")
    return version


class ExportedConfig(Body):
    """An exported configuration. Unknown parts are accepted and reported as skipped."""

    model_config = ConfigDict(extra="allow")

    version: Annotated[str, AfterValidator(_require_supported), Field(examples=["1.0"])]
    patterns: Annotated[list[Id], Field(max_length=10_000)] = Field(default_factory=list, examples=[["email"]])
    dlp_rules: Records = Field(default_factory=list)
    custom_patterns: Records = Field(default_factory=list)
    suppressions: Annotated[list[Id], Field(max_length=MAX_RULES)] = Field(default_factory=list)
    group_overrides: dict[str, dict[str, str]] = Field(default_factory=dict, max_length=MAX_RULES)
    compliance_bundles: Records = Field(default_factory=list)
    content_filters: Records = Field(default_factory=list)
    overrides: dict[str, Any] = Field(default_factory=dict)


class ConfigImport(Body):
    config: ExportedConfig
    dry_run: Annotated[bool, Field(description="Validate and report only, without changes.")] = False


class Imported(ResponseBody):
    part: Annotated[str, Field(examples=["dlp_rules"])]
    name: str


class Skipped(Imported):
    reason: str


class Fault(ResponseBody):
    where: Annotated[str, Field(description="Path in the document.", examples=["custom_patterns[2].pattern"])]
    message: str


class ConfigImported(ResponseBody):
    dry_run: bool
    standard_patterns: Annotated[
        int, Field(description="Number of built-in patterns in `patterns`, which need no import.")
    ]
    imported: list[Imported]
    skipped: list[Skipped]
    missing_patterns: Annotated[
        list[str],
        Field(description="Patterns that are named but not defined in the document. Create them manually."),
    ]
    errors: list[Fault]
