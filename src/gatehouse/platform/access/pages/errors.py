"""Errors as pages."""

from typing import Final

from gatehouse.foundation.errors import BadRequest, NotFound, Refusal, Unprocessable
from gatehouse.foundation.http.envelopes import Body, ErrorForm, detail
from gatehouse.platform.access.pages.rendering import headers, markup


class BadPageRequest(BadRequest):
    message = "This link or form is not complete. Go back and try again."


def _body(error: Refusal) -> Body:
    message = error.text
    # Where the API's words would tell a person nothing.
    if error.status == 429:
        message = "Too many attempts. Wait a moment, then try again."
    elif type(error) is NotFound:
        message = "There is no such page."
    elif isinstance(error, Unprocessable):
        message = BadPageRequest.message
    return {**detail(error), "message": message, "retry_after": error.extra.get("retry_after")}


def _encoded(body: Body) -> bytes:
    return markup("error.html", message=body["message"], reason=body.get("reason"), retry_after=body.get("retry_after"))


#: The form of every path under which people find pages.
FORM: Final = ErrorForm(_body, 400, "text/html; charset=utf-8", encode=_encoded, headers=headers())
