"""Bodies of the platform's notices."""

from typing import Annotated, Literal

from pydantic import Field

from gatehouse.foundation.http.bodies import Body, Id, ResponseBody


class Notice(Body):
    type: Literal["dead_letter"]
    tenant_id: Annotated[Id, Field(description="The organization's tenant on the platform.")]
    subject_id: Annotated[Id, Field(description="Id of the webhook.")]
    message: Annotated[str, Field(min_length=1, max_length=500, examples=['Deliveries of the webhook "ops" failed.'])]


class NewNotices(Body):
    notices: Annotated[list[Notice], Field(max_length=1000)]


class NoticesTaken(ResponseBody):
    accepted: int
    unknown: Annotated[int, Field(description="Notices about tenants that belong to no active organization.")]
