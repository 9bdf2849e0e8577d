"""Strict parser of `application/x-www-form-urlencoded` bodies. A repeated field is refused, because two readers of the
form could use different values of the field."""

from typing import Final
from urllib.parse import parse_qsl

MEDIA_TYPE: Final = "application/x-www-form-urlencoded"
_MAX_FIELDS: Final = 30


class BadForm(ValueError):
    """The form is invalid. The message states the reason and contains no part of the form."""


def parse_form(form: bytes | str) -> dict[str, str]:
    """Returns the fields of a form or query, including empty ones. Raises `BadForm`."""
    try:
        text = form.decode("ascii") if isinstance(form, bytes) else form
        pairs = parse_qsl(text, keep_blank_values=True, encoding="utf-8", errors="strict", max_num_fields=_MAX_FIELDS)
    except ValueError:  # includes UnicodeDecodeError
        raise BadForm("The form cannot be read.") from None
    fields = dict(pairs)
    if len(fields) != len(pairs):
        raise BadForm("The form repeats a field. Send each field once.")
    return fields


def is_form(content_type: str) -> bool:
    return content_type.partition(";")[0].strip().lower() == MEDIA_TYPE
