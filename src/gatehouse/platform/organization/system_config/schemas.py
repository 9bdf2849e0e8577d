"""Bodies of the configuration's endpoints (reference 2, System configuration entry)."""

from typing import Annotated

from pydantic import Field

from gatehouse.foundation.http.bodies import Body, Shown


class NewValue(Body):
    value: Annotated[str, Field(max_length=1000, examples=["true"])]


class Entry(Shown):
    key: Annotated[str, Field(examples=["auto_title_enabled"])]
    category: Annotated[str, Field(examples=["conversation"])]
    value: Annotated[str, Field(description="As set here, else by the environment, else the default.")]
    default: str
    editable: bool
    description: str
