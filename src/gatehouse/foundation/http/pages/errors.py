"""Renders errors as HTML pages."""

from gatehouse.foundation.errors import BadRequest, NotFound, Refusal, Unprocessable
from gatehouse.foundation.http.envelopes import Body, ErrorFormat, detail
from gatehouse.foundation.http.pages.rendering import Pages, headers


class BadPageRequest(BadRequest):
    message = "This link or form is not complete. Go back and try again."


def error_format(pages: Pages) -> ErrorFormat:
    """Returns the format of errors on the paths of pages."""

    def encoded(body: Body) -> bytes:
        return pages.markup(
            "error.html", message=body["message"], reason=body.get("reason"), retry_after=body.get("retry_after")
        )

    return ErrorFormat(_body, 400, "text/html; charset=utf-8", encode=encoded, headers=headers())


def _body(error: Refusal) -> Body:
    message = error.text
    # The API's messages for these errors are meant for programs.
    if error.status == 429:
        message = "Too many attempts. Wait a moment, then try again."
    elif type(error) is NotFound:
        message = "There is no such page."
    elif isinstance(error, Unprocessable):
        message = BadPageRequest.message
    return {**detail(error), "message": message, "retry_after": error.extra.get("retry_after")}
