"""The id that follows one request through logs, records and the answer's `X-Request-Id` (decisions 4)."""

import random
import re

_well_formed = re.compile(r"[A-Za-z0-9._-]{1,128}").fullmatch


def choose(sent: str | None) -> str:
    """The caller's own id where it is well-formed, so that its logs and ours can be joined; else a new one."""
    if sent is not None and _well_formed(sent):
        return sent
    return f"{random.getrandbits(128):032x}"
