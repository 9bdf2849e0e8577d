"""THE ORDER in which a request is looked at, as values. `engine.run` walks it; nothing else knows it.

maintenance, authenticate, rate limit, IP allowlist, scope, tags and exhausted budgets (of model calls alone),
DLP on an unknown model's name, content filters, samples, DLP on input, the end user,
the organization's instructions, overrides,
for every candidate: policy rules, model access, overrides, model registry, request fields, kill switch,
budget reservation, response cache, provider call (with retries and fallbacks), the sample's answer, DLP on output,
settle, the sample, record
"""

from collections.abc import Mapping
from typing import Final

from gatehouse.engine.stages import (
    attribution,
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
    request_fields,
    response_cache,
    sampling,
    scope,
)

#: before anybody knows who calls: `check(Received)`
ON_ARRIVAL: Final = (maintenance.check,)

#: once `authenticate.caller` has told: `check(Identified)`
OF_THE_CALLER: Final = (rate_limit.check, ip_allowlist.check, scope.check)

#: the same where a model is called: lists of models and scans cost nothing
OF_A_MODELS_CALLER: Final = (*OF_THE_CALLER, attribution.note_tags, budget.check)

#: once the body is decoded: `check(Asked)`
OF_THE_CALL: Final = (
    dlp_input.name,
    content_filters.check,
    sampling.choose,
    dlp_input.inspect,
    attribution.note_end_user,
    content_filters.instruct,
    overrides.check,
)

#: What the time that they take is called (`engine.timing`).
PARTS: Final[Mapping[object, str]] = {
    dlp_input.name: "dlp_in",
    content_filters.check: "filters",
    sampling.choose: "filters",
    dlp_input.inspect: "dlp_in",
    attribution.note_end_user: "filters",
    content_filters.instruct: "filters",
    overrides.check: "route",
}

#: for each that `route.candidates` names, and each that a rule sends the call to: `judge(Asked, Candidate)`, which
#: waits for nothing; whoever is refused leaves the chain
OF_A_CANDIDATE: Final = (
    policy_rules.judge,
    model_access.judge,
    overrides.judge,
    registry.judge,
    request_fields.judge,
    kill_switch.judge,
)

#: when it is known where the call goes: `prepare(Admitted)`
BEFORE_THE_CALL: Final = (budget.reserve, response_cache.look)

#: of a whole answer: `inspect(Asked, body)`; a stream passes `dlp_output.guard`
OF_THE_ANSWER: Final = (sampling.note_answer, dlp_output.inspect)

#: when all is over, also for a client that has left: `settle(Answered)`; then `record`
AFTERWARDS: Final = (budget.settle, response_cache.keep, sampling.keep)
