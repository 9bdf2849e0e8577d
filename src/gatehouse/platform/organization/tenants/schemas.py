"""Types of fields for the names of an organization."""

from typing import Annotated

from pydantic import Field

Slug = Annotated[str, Field(pattern=r"^[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?$", examples=["analytical-engines"])]
Name = Annotated[str, Field(min_length=1, max_length=255, examples=["Analytical Engines"])]
