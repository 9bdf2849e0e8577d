"""How far the addresses may lie that an organization gives to its providers (`EGRESS_POLICY`)."""

from typing import Final, Literal, TypeAlias

#: `private`: anywhere but where the address guard never goes. `public`: the open internet, and EGRESS_ALLOWLIST.
#: `listed`: EGRESS_ALLOWLIST alone.
EgressPolicy: TypeAlias = Literal["private", "public", "listed"]

_STRICTNESS: Final[dict[EgressPolicy, int]] = {"private": 0, "public": 1, "listed": 2}


def stricter(one: EgressPolicy, other: EgressPolicy) -> EgressPolicy:
    return one if _STRICTNESS[one] >= _STRICTNESS[other] else other
