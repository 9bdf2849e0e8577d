"""THE ORDER in which a request is looked at, as values. `engine.run` walks it; nothing else knows it.

maintenance, authenticate, IP allowlist, rate limit, scope, exhausted budgets,
DLP on an unknown model's name, content filters, DLP on input, the organization's instructions, overrides,
for every candidate: policy rules, model access, overrides, model registry, kill switch,
budget reservation, response cache, provider call (with retries and fallbacks), DLP on output, settle, record
"""

from collections.abc import Mapping
from typing import Final

from gatehouse.engine.stages import (
    budget,
    content_filters,
    dlp_input,
    dlp_output,
    ip_allowlist,
    kill_switch,
    maintenance,
    model_access,
    overrides,
    policy_rules,
    rate_limit,
    registry,
    response_cache,
    scope,
)

#: before anybody knows who calls: `check(Received)`
ON_ARRIVAL: Final = (maintenance.check,)

#: once `authenticate.caller` has told: `check(Identified)`
OF_THE_CALLER: Final = (ip_allowlist.check, rate_limit.check, scope.check, budget.check)

#: once the body is decoded: `check(Asked)`
OF_THE_CALL: Final = (
    dlp_input.name,
    content_filters.check,
    dlp_input.inspect,
    content_filters.instruct,
    overrides.check,
)

#: What the time that they take is called (`engine.timing`).
PARTS: Final[Mapping[object, str]] = {
    dlp_input.name: "dlp_in",
    content_filters.check: "filters",
    dlp_input.inspect: "dlp_in",
    content_filters.instruct: "filters",
}

#: for each that `route.candidates` names, and each that a rule sends the call to: `judge(Asked, Candidate)`, which
#: waits for nothing; whoever is refused leaves the chain
OF_A_CANDIDATE: Final = (policy_rules.judge, model_access.judge, overrides.judge, registry.judge, kill_switch.judge)

#: when it is known where the call goes: `prepare(Admitted)`
BEFORE_THE_CALL: Final = (budget.reserve, response_cache.look)

#: of a whole answer: `inspect(Asked, body)`; a stream passes `dlp_output.guard`
OF_THE_ANSWER: Final = (dlp_output.inspect,)

#: when all is over, also for a client that has left: `settle(Answered)`; then `record`
AFTERWARDS: Final = (budget.settle, response_cache.keep)
