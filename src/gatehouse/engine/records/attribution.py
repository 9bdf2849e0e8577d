"""Attribution of calls: the end user that the body names, and the tags of the header. The size of both is bounded,
because usage records keep them."""

import re
from collections.abc import Mapping
from functools import lru_cache
from typing import Any, Final

from gatehouse.engine.conversation.errors import InvalidField

TAGS_HEADER: Final = "X-Gateway-Tags"
MAX_TAGS: Final = 10
#: Matches one tag. Spaces and `@` are excluded, so that names, e-mail addresses and free text do not match.
TAG_PATTERN: Final = r"^[A-Za-z0-9_.:/=-]{1,64}$"
MAX_END_USER_CHARACTERS: Final = 256
#: Longest header value that is parsed. It has room for the maximum number of tags at full length, with spaces and
#: repetitions.
_MAX_HEADER_CHARACTERS: Final = 2048

_is_tag: Final = re.compile(TAG_PATTERN).fullmatch
_CONTROL: Final = re.compile(r"[\x00-\x1f\x7f-\x9f]")
_SYNTAX_MESSAGE: Final = (
    f"`{TAGS_HEADER}` must be a comma-separated list of at most {MAX_TAGS} tags, each with 1 to 64 of the characters"
    " A-Z a-z 0-9 _ . : / = -"
)


@lru_cache(maxsize=512)
def parse_tags(header: str) -> tuple[str, ...]:
    """Return the tags in a header value, without repetitions. Raises `InvalidField`."""
    if len(header) > _MAX_HEADER_CHARACTERS:
        raise InvalidField(TAGS_HEADER, _SYNTAX_MESSAGE)
    # Empty list elements are ignored (RFC 9110, 5.6.1).
    tags = tuple(dict.fromkeys(tag for element in header.split(",") if (tag := element.strip(" \t"))))
    if not are_tags(tags):
        raise InvalidField(TAGS_HEADER, _SYNTAX_MESSAGE)
    return tags


def are_tags(tags: tuple[str, ...]) -> bool:
    """Return whether all tags are valid and their number is within the maximum."""
    return len(tags) <= MAX_TAGS and all(map(_is_tag, tags))


def end_user(dialect: str, body: Mapping[str, Any]) -> str | None:
    """Return the end user that a decoded body names, in the recorded form, or None if the body specifies none."""
    if dialect in {"anthropic_messages", "anthropic_token_count"}:
        metadata = body.get("metadata")
        value = metadata.get("user_id") if isinstance(metadata, dict) else None
    else:
        value = body.get("user") or body.get("safety_identifier")
    return bounded_end_user(value) if isinstance(value, str) else None


def bounded_end_user(value: str) -> str | None:
    """Return the first 256 characters (the maximum of the providers) without control characters, or None if no
    characters remain."""
    return _CONTROL.sub("", value[:MAX_END_USER_CHARACTERS]) or None
