"""Bodies of the endpoints of feature flags."""

from datetime import datetime
from typing import Annotated

from pydantic import Field

from gatehouse.foundation.http.bodies import Body, ResponseBody


class FlagUpdate(Body):
    enabled: Annotated[bool, Field(examples=[True])]


class Flag(ResponseBody):
    flag: Annotated[str, Field(examples=["human_in_loop"])]
    enabled: bool
    updated_at: datetime
