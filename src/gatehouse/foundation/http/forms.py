"""What HTML forms and OAuth clients send (`application/x-www-form-urlencoded`), read strictly: a field that stands
there twice is one for whoever checks it and another for whoever acts on it."""

from typing import Final
from urllib.parse import parse_qsl

MEDIA_TYPE: Final = "application/x-www-form-urlencoded"
_MAX_FIELDS: Final = 30


class BadForm(ValueError):
    """It cannot be read; the text says why and repeats nothing of it."""


def parsed(sent: bytes | str) -> dict[str, str]:
    """The fields of a form or of a query, empty ones too. Raises `BadForm`."""
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
