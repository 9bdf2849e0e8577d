"""Bodies of the test mails' endpoint."""

from typing import Annotated
from uuid import UUID

from pydantic import Field

from gatehouse.foundation.http.bodies import ResponseBody


class TestMailQueued(ResponseBody):
    id: Annotated[UUID, Field(description="The `resource_id` of the audit events that report the result.")]
    sent_to: Annotated[str, Field(examples=["ada@example.com"])]
