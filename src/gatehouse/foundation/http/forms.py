"""Strict parser of `application/x-www-form-urlencoded` bodies. A repeated field is refused, because two readers could
use different values of it."""

from typing import Final
from urllib.parse import parse_qsl

MEDIA_TYPE: Final = "application/x-www-form-urlencoded"
_MAX_FIELDS: Final = 30


class BadForm(ValueError):
    """The form is invalid. The message has the reason and no part of the form."""


def parse_form(sent: bytes | str) -> dict[str, str]:
    """Return the fields of a form or query, including empty ones. Raises `BadForm`."""
    try:
        text = sent.decode("ascii") if isinstance(sent, bytes) else sent
        pairs = parse_qsl(text, keep_blank_values=True, encoding="utf-8", errors="strict", max_num_fields=_MAX_FIELDS)
    except ValueError:  # UnicodeDecodeError is one
        raise BadForm("The form cannot be read.") from None
    fields = dict(pairs)
    if len(fields) != len(pairs):
        raise BadForm("A field stands in the form twice.")
    return fields


def is_form(content_type: str) -> bool:
    return content_type.partition(";")[0].strip().lower() == MEDIA_TYPE
