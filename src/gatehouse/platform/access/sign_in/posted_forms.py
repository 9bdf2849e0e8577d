"""Reads the forms that pages post, and checks their proof."""

from typing import Annotated, TypeVar

import msgspec
from fastapi import Depends, Request
from pydantic import ValidationError

from gatehouse.foundation.errors import Refusal, Unprocessable
from gatehouse.foundation.http import forms
from gatehouse.foundation.http.bodies import Body
from gatehouse.foundation.http.forms import BadForm
from gatehouse.foundation.http.pages.errors import BadPageRequest
from gatehouse.platform.access.sign_in import paths, proof
from gatehouse.platform.request.ports import TheHost

B = TypeVar("B", bound=Body)


class Form(msgspec.Struct, frozen=True):
    """The fields of a form that a page of this platform sent."""

    fields: dict[str, str]

    @property
    def next(self) -> str:
        return paths.own_path(self.fields.get("next"))

    def get(self, name: str) -> str:
        """Return the field unchanged; empty if it is missing."""
        return self.fields.get(name, "")

    def stripped(self, name: str) -> str | None:
        """Return the field without surrounding blanks; None if it is empty."""
        return self.get(name).strip() or None


class FormFieldError(Exception):
    """A field of a form is invalid. The text is for the user."""


async def _read_form(request: Request, host: TheHost) -> Form:
    if not forms.is_form(request.headers.get("content-type", "")):
        raise BadPageRequest
    try:
        form = Form(forms.parse_form(await request.body()))
    except BadForm:
        raise BadPageRequest from None
    proof.check(request, form.get("proof"), host)
    return form


Posted = Annotated[Form, Depends(_read_form)]


def parse_body(body_type: type[B], **values: object) -> B:
    """Return an API body, validated by the API's rules. Raises `FormFieldError`."""
    try:
        return body_type.model_validate({name: value for name, value in values.items() if value is not None})
    except ValidationError as error:
        fault = error.errors()[0]
        name = str(fault["loc"][0]) if fault["loc"] else ""
        raise FormFieldError(
            f"{_FIELD_LABELS.get(name, name)}: {str(fault['msg']).removeprefix('Value error, ')}."
        ) from None


_FIELD_LABELS = {"email": "E-mail", "password": "Password", "token": "Token", "invitation_token": "Token"}


def error_text(error: Refusal) -> str:
    """Return the text of an error for the page."""
    if isinstance(error, Unprocessable) and error.faults:
        return error.faults[0].message
    return error.text
