"""The id of a request in logs, records and the response's `X-Request-Id`."""

import random
import re

_well_formed = re.compile(r"[A-Za-z0-9._-]{1,128}").fullmatch


def choose(sent: str | None) -> str:
    """Returns the id that the caller sent if it is well-formed, else a new id. With the caller's id, the caller's logs
    and ours can be joined."""
    if sent is not None and _well_formed(sent):
        return sent
    return f"{random.getrandbits(128):032x}"
