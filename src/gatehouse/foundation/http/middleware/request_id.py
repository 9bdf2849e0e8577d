"""The id of a request in logs, records and the response's `X-Request-Id`."""

import random
import re

_well_formed = re.compile(r"[A-Za-z0-9._-]{1,128}").fullmatch


def choose(sent: str | None) -> str:
    """Return the caller's id if it is well-formed, so that its logs and ours can be joined; else a new id."""
    if sent is not None and _well_formed(sent):
        return sent
    return f"{random.getrandbits(128):032x}"
