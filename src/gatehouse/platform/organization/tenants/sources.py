"""Where effective values come from."""

from collections.abc import Iterable, Mapping
from typing import Annotated, Any, Literal

from pydantic import Field

#: The organization has set the value, the environment supplies it, or it is the built-in default.
Source = Literal["organization", "environment", "default"]

Sources = Annotated[
    dict[str, Source],
    Field(description="Where each value comes from, by field: `organization` where it was set."),
]


def sources_of(fields: Iterable[str], stored: Mapping[str, Any]) -> dict[str, Source]:
    """Return the source of each field. `stored` contains only the fields that the organization has set."""
    return {field: "organization" if field in stored else "default" for field in fields}
