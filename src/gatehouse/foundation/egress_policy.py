"""The policy for the addresses of organizations' own providers (`EGRESS_POLICY`)."""

from typing import Final, Literal, TypeAlias

#: `private`: all addresses except those that are always refused. `public`: public addresses and EGRESS_ALLOWLIST.
#: `listed`: only EGRESS_ALLOWLIST.
EgressPolicy: TypeAlias = Literal["private", "public", "listed"]

_STRICTNESS: Final[dict[EgressPolicy, int]] = {"private": 0, "public": 1, "listed": 2}


def stricter(one: EgressPolicy, other: EgressPolicy) -> EgressPolicy:
    return one if _STRICTNESS[one] >= _STRICTNESS[other] else other
