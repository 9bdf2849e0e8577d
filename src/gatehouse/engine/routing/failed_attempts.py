"""Failed attempts, and the errors that report the failure of a whole chain of candidates."""

import math

from gatehouse.engine.conversation.errors import UnknownUpstream
from gatehouse.engine.exchange import Attempt
from gatehouse.engine.providers.failure import DEPLOYMENT_FULL, KILL_SWITCHED, NOT_CONVERTIBLE, sentence
from gatehouse.engine.routing.deployments.load import BUSY_SECONDS
from gatehouse.engine.stages.candidates.kill_switch import ProviderUnavailable
from gatehouse.foundation.errors import BadGateway, GatewayTimeout, Refusal, TooManyRequests, Unavailable
from gatehouse.foundation.outbound import NoConnectionFree
from gatehouse.policy.catalog import Candidate


class AllProvidersFailed(BadGateway):
    code = "all_providers_failed"
    message = "No provider could answer."


class Overloaded(Unavailable):
    """This worker has the maximum number of calls in progress to each provider of the chain: 503."""

    code = "gateway_overloaded"
    message = "The gateway has too many calls to providers in progress. Try again later."

    def __init__(self) -> None:
        super().__init__(headers={"Retry-After": "1"})


class DeploymentsFull(TooManyRequests):
    """No deployment of the alias has room for the request within its limits: 429."""

    code = "deployments_full"
    message = "All deployments of this model have reached their limits. Try again later."


class ProviderTimeout(GatewayTimeout):
    code = "provider_timeout"


def new_attempt(
    candidate: Candidate,
    status: int | None,
    reason: str,
    retry_after: float | None = None,
    duration_ms: float | None = None,
    *,
    credential: str | None = None,
) -> Attempt:
    return Attempt(
        provider=candidate.provider.id,
        model=candidate.model.model_id,
        status=status,
        reason=reason,
        retry_after=retry_after,
        duration_ms=duration_ms,
        credential=credential or candidate.credential,
    )


def chain_failed(attempts: list[Attempt]) -> Refusal:
    """Return the error for a chain in which no candidate answered, although at least one can express the call."""
    # Whether the client can do something about it depends on the candidates that can express the call.
    reasons = {attempt.reason for attempt in attempts} - {NOT_CONVERTIBLE}
    if reasons == {KILL_SWITCHED}:
        return ProviderUnavailable()
    if reasons == {NoConnectionFree.reason}:
        return Overloaded()
    if reasons == {DEPLOYMENT_FULL}:
        full = (attempt for attempt in attempts if attempt.reason == DEPLOYMENT_FULL)
        wait = min(attempt.retry_after or BUSY_SECONDS for attempt in full)
        return DeploymentsFull(headers={"Retry-After": str(max(math.ceil(wait), 1))})
    last = attempts[-1]
    failed = f"Last attempt: {last.provider}/{last.model}, {last.reason}. {sentence(last.reason, last.status)}"
    # The shortest delay is enough, because the client needs only one available provider.
    delays = [attempt.retry_after for attempt in attempts if attempt.retry_after is not None]
    headers = {"Retry-After": str(max(math.ceil(min(delays)), 1))} if delays else None
    listed = [
        {"provider": attempt.provider, "model": attempt.model, "status": attempt.status, "reason": attempt.reason}
        for attempt in attempts
    ]
    if reasons == {"model_not_found"}:
        return UnknownUpstream(f"No provider has the model. {failed}", attempts=listed)
    if "deadline" in reasons or reasons == {"timeout"}:
        return ProviderTimeout(f"No provider answered in time. {failed}", headers=headers, attempts=listed)
    return AllProvidersFailed(f"No provider could answer. {failed}", headers=headers, attempts=listed)
