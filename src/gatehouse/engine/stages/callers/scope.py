"""Refuses credentials that lack the scope of the call (docs/authentication.md). This stage runs after the rate limit,
so that its refusals count against the limit."""

from gatehouse.engine.exchange import Identified
from gatehouse.engine.ports import Ports
from gatehouse.engine.verdict import ALLOW, Refuse, Verdict
from gatehouse.foundation.errors import Forbidden


class ScopeMissing(Forbidden):
    code = "insufficient_scope"


def check(x: Identified, ports: Ports) -> Verdict:
    if x.caller.has_scope(x.scope):
        return ALLOW
    return Refuse(ScopeMissing(f"The credential lacks the scope {x.scope}."))
