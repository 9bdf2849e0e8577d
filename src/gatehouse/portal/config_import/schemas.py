"""Response of an import, with the fields of the platform's."""

from typing import Annotated

from pydantic import Field

from gatehouse.foundation.http.bodies import ResponseBody


class Imported(ResponseBody):
    part: Annotated[str, Field(description="Part of the file.", examples=["dlp_rules"])]
    name: str


class Skipped(Imported):
    reason: str


class Fault(ResponseBody):
    where: Annotated[str, Field(description="Position in the file.", examples=["custom_patterns[2].pattern"])]
    message: str


class ConfigImported(ResponseBody):
    dry_run: bool
    standard_patterns: Annotated[
        int, Field(description="Number of `patterns` in the standard set, which every tenant has.")
    ]
    imported: list[Imported]
    skipped: Annotated[list[Skipped], Field(description="Parts that exist already, or cannot be imported.")]
    missing_patterns: Annotated[
        list[str], Field(description="Named by `patterns` or by a rule, but missing in the file: create them by hand.")
    ]
    errors: Annotated[list[Fault], Field(description="Invalid parts, which were left out.")]
