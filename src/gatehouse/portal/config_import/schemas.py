"""The answer of an import, in the platform's words (decisions 8, Config import)."""

from typing import Annotated

from pydantic import Field

from gatehouse.foundation.http.bodies import Shown


class Imported(Shown):
    part: Annotated[str, Field(description="Of the file.", examples=["dlp_rules"])]
    name: str


class Skipped(Imported):
    reason: str


class Fault(Shown):
    where: Annotated[str, Field(description="In the file.", examples=["custom_patterns[2].pattern"])]
    message: str


class ConfigImported(Shown):
    dry_run: bool
    standard_patterns: Annotated[int, Field(description="Of `patterns`, how many are the standard set's: it is there.")]
    imported: list[Imported]
    skipped: Annotated[list[Skipped], Field(description="What is there already, or has no place there.")]
    missing_patterns: Annotated[
        list[str], Field(description="Named by `patterns` or by a rule, and nowhere in the file: to be made by hand.")
    ]
    errors: Annotated[list[Fault], Field(description="What is not good, and was left out.")]
