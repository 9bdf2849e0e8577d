"""Bodies of the endpoints of the configuration."""

from typing import Annotated

from pydantic import Field

from gatehouse.foundation.http.bodies import Body, ResponseBody
from gatehouse.platform.organization.tenants.sources import Source


class NewValue(Body):
    value: Annotated[str, Field(max_length=1000, examples=["true"])]


class Entry(ResponseBody):
    key: Annotated[str, Field(examples=["auto_title_enabled"])]
    category: Annotated[str, Field(examples=["conversation"])]
    value: Annotated[
        str, Field(description="The organization's own value, or else that of the environment, or else the default.")
    ]
    default: str
    source: Annotated[Source, Field(description="Source of `value`.")]
    editable: bool
    choices: Annotated[
        list[str] | None,
        Field(description="The valid values. Null if they cannot be listed.", examples=[["true", "false"]]),
    ]
    description: str
