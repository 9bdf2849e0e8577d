"""Whom and what a call is for, in the caller's words: the end user in the body, and tags in a header. Both are bounded,
because usage records keep them."""

import re
from collections.abc import Mapping
from functools import lru_cache
from typing import Any, Final

from gatehouse.engine.conversation.errors import InvalidField

TAGS_HEADER: Final = "X-Gateway-Tags"
MAX_TAGS: Final = 10
#: No character that a name, a mail address or free text needs.
TAG_PATTERN: Final = r"^[A-Za-z0-9_.:/=-]{1,64}$"
MAX_END_USER_CHARACTERS: Final = 256
#: Every allowed tag at its full length, with room for spaces and repeated tags.
_MAX_HEADER_CHARACTERS: Final = 2048

_is_tag: Final = re.compile(TAG_PATTERN).fullmatch
_CONTROL: Final = re.compile(r"[\x00-\x1f\x7f-\x9f]")
_RULE: Final = (
    f"`{TAGS_HEADER}` must be a comma-separated list of at most {MAX_TAGS} tags, each with 1 to 64 of the characters"
    " A-Z a-z 0-9 _ . : / = -"
)


@lru_cache(maxsize=512)
def parse_tags(header: str) -> tuple[str, ...]:
    """The tags of a header's value, without repetitions. Raises `InvalidField`."""
    if len(header) > _MAX_HEADER_CHARACTERS:
        raise InvalidField(TAGS_HEADER, _RULE)
    # An empty element of a list counts for nothing (RFC 9110, 5.6.1).
    tags = tuple(dict.fromkeys(tag for element in header.split(",") if (tag := element.strip(" \t"))))
    if not are_tags(tags):
        raise InvalidField(TAGS_HEADER, _RULE)
    return tags


def are_tags(tags: tuple[str, ...]) -> bool:
    """Whether these could be a record's tags."""
    return len(tags) <= MAX_TAGS and all(map(_is_tag, tags))


def end_user(dialect: str, body: Mapping[str, Any]) -> str | None:
    """The end user that a decoded body names, as it is recorded. None where it names none."""
    if dialect == "anthropic_messages":
        metadata = body.get("metadata")
        value = metadata.get("user_id") if isinstance(metadata, dict) else None
    else:
        value = body.get("user") or body.get("safety_identifier")
    return bounded_end_user(value) if isinstance(value, str) else None


def bounded_end_user(value: str) -> str | None:
    """The first 256 characters (providers take no more), without control characters. None where nothing is left."""
    return _CONTROL.sub("", value[:MAX_END_USER_CHARACTERS]) or None
