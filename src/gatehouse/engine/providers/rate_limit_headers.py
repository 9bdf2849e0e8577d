"""Reads how long a provider's rate limit is exhausted from the headers of an answer.

OpenAI and compatible providers send `x-ratelimit-remaining-requests` and `x-ratelimit-remaining-tokens`, with durations
in `x-ratelimit-reset-requests` and `x-ratelimit-reset-tokens` (`1s`, `6m0s`, `120ms`). Anthropic sends
`anthropic-ratelimit-requests-remaining` and `anthropic-ratelimit-tokens-remaining`, with times in
`anthropic-ratelimit-requests-reset` and `anthropic-ratelimit-tokens-reset` (RFC 3339).
"""

import re
from collections.abc import Mapping
from datetime import datetime
from typing import Final

from gatehouse.foundation.clock import utc_now

_DURATION: Final = re.compile(
    r"(?:(\d{1,4})h)?(?:(\d{1,5})m(?!s))?(?:(\d{1,6}(?:\.\d{1,9})?)s)?(?:(\d{1,9})ms)?", re.ASCII
)
#: Names of the headers with the remaining number and with the reset, in OpenAI's and in Anthropic's form.
_DURATION_HEADERS: Final = tuple(
    (f"x-ratelimit-remaining-{unit}", f"x-ratelimit-reset-{unit}") for unit in ("requests", "tokens")
)
_TIME_HEADERS: Final = tuple(
    (f"anthropic-ratelimit-{unit}-remaining", f"anthropic-ratelimit-{unit}-reset") for unit in ("requests", "tokens")
)


def exhausted_seconds(headers: Mapping[str, str]) -> float | None:
    """Return the seconds until the limit resets, or None if the headers report no exhausted limit. Header names are in
    lower case. A reset that cannot be read is ignored."""
    for remaining, reset in _DURATION_HEADERS:
        if headers.get(remaining) == "0" and (seconds := _duration(headers.get(reset, ""))) is not None:
            return seconds
    for remaining, reset in _TIME_HEADERS:
        if headers.get(remaining) == "0" and (seconds := _until(headers.get(reset, ""))) is not None:
            return seconds
    return None


def _duration(text: str) -> float | None:
    match = _DURATION.fullmatch(text.strip())
    if match is None or not match.group():
        return None
    hours, minutes, seconds, milliseconds = match.groups()
    return int(hours or 0) * 3600 + int(minutes or 0) * 60 + float(seconds or 0) + int(milliseconds or 0) / 1000


def _until(text: str) -> float | None:
    try:
        time = datetime.fromisoformat(text)
    except ValueError:
        return None
    return None if time.tzinfo is None else max((time - utc_now()).total_seconds(), 0.0)
