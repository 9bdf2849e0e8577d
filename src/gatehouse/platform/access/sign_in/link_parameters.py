"""Query parameters of a link to one of the pages. Unknown parameters are ignored, because mail programs add their
own."""

from typing import Annotated

from fastapi import Query
from pydantic import BaseModel, Field

from gatehouse.platform.access.sign_in import paths


class _Link(BaseModel):
    next_url: Annotated[str, Field(alias="next", max_length=10_000)] = ""
    #: address that the page fills in
    email: Annotated[str, Field(max_length=255)] = ""
    #: the organization's slug
    tenant: Annotated[str, Field(max_length=255)] = ""
    #: a one-time token from an administrator or a mail
    token: Annotated[str, Field(max_length=255)] = ""
    #: the action that redirected to this page, which selects the note to show
    done: Annotated[str, Field(max_length=20)] = ""

    @property
    def next(self) -> str:
        return paths.own_path(self.next_url)


Link = Annotated[_Link, Query()]
