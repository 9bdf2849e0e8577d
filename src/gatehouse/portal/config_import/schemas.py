"""The response of an import. It has the fields of the platform's response."""

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
        int, Field(description="Number of `patterns` that are built in, so that every tenant has them.")
    ]
    imported: list[Imported]
    skipped: Annotated[list[Skipped], Field(description="Parts that already exist, or that cannot be imported.")]
    missing_patterns: Annotated[
        list[str], Field(description="Patterns that the file names but does not contain. Create them by hand.")
    ]
    errors: Annotated[list[Fault], Field(description="Invalid parts, which were not imported.")]
