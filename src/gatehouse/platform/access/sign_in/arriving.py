"""What a link to one of the pages may say. Other parameters are ignored: mail programs and the like add theirs."""

from typing import Annotated

from fastapi import Query
from pydantic import BaseModel, Field

from gatehouse.platform.access.sign_in import paths


class _Link(BaseModel):
    onward: Annotated[str, Field(alias="next", max_length=10_000)] = ""
    #: who probably signs in
    email: Annotated[str, Field(max_length=255)] = ""
    #: the organization's slug
    tenant: Annotated[str, Field(max_length=255)] = ""
    #: an administrator's one-time token
    token: Annotated[str, Field(max_length=255)] = ""
    #: what was done before, for a note
    done: Annotated[str, Field(max_length=20)] = ""

    @property
    def next(self) -> str:
        return paths.own(self.onward)


Link = Annotated[_Link, Query()]
