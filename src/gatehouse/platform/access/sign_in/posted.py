"""What a page's form brings, once it is known to come from a page of ours."""

from typing import Annotated, TypeVar

import msgspec
from fastapi import Depends, Request
from pydantic import ValidationError

from gatehouse.foundation.errors import Refusal, Unprocessable
from gatehouse.foundation.http import forms
from gatehouse.foundation.http.bodies import Body
from gatehouse.foundation.http.forms import BadForm
from gatehouse.platform.access.pages.errors import BadPageRequest
from gatehouse.platform.access.sign_in import paths, proof
from gatehouse.platform.ports import TheHost

B = TypeVar("B", bound=Body)


class Form(msgspec.Struct, frozen=True):
    fields: dict[str, str]

    @property
    def next(self) -> str:
        return paths.own(self.fields.get("next"))

    def get(self, name: str) -> str:
        """The field as it was typed; empty where it is not there."""
        return self.fields.get(name, "")

    def word(self, name: str) -> str | None:
        """The field without blanks around it; None where nothing is left."""
        return self.get(name).strip() or None


class Mistyped(Exception):
    """A field is wrong; the text is for the person who typed it."""


async def _posted(request: Request, host: TheHost) -> Form:
    if not forms.is_form(request.headers.get("content-type", "")):
        raise BadPageRequest
    try:
        form = Form(forms.parsed(await request.body()))
    except BadForm:
        raise BadPageRequest from None
    proof.check(request, form.get("proof"), host)
    return form


Posted = Annotated[Form, Depends(_posted)]


def body_of(kind: type[B], **values: object) -> B:
    """The API's own body, with its own rules. Raises `Mistyped`."""
    try:
        return kind.model_validate({name: value for name, value in values.items() if value is not None})
    except ValidationError as error:
        first = error.errors()[0]
        name = str(first["loc"][0]) if first["loc"] else ""
        raise Mistyped(f"{_NAMES.get(name, name)}: {str(first['msg']).removeprefix('Value error, ')}.") from None


_NAMES = {"email": "E-mail", "password": "Password", "token": "Token", "invitation_token": "Token"}


def told(error: Refusal) -> str:
    """What went wrong, for the page that stays open."""
    if isinstance(error, Unprocessable) and error.faults:
        return error.faults[0].message
    return error.text
