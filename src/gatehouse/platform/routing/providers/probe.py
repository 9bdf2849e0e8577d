"""Calls a provider outside of requests: its list of models, or a minimal call of a model.

Every wait is bounded. Errors are the gateway's own codes and sentences, because a provider's message may repeat what it
was sent.
"""

import asyncio
import time
from collections.abc import Mapping, Sequence
from typing import Any, Final

import msgspec

from gatehouse.engine.conversation.dialects import DIALECTS
from gatehouse.engine.providers import KINDS, FoundModel, ProviderFailed, ProviderNotConfigured, call_provider
from gatehouse.engine.providers.credentials import lacks_secret
from gatehouse.engine.providers.failure import sentence
from gatehouse.foundation.clock import utc_now
from gatehouse.foundation.identity import TenantId
from gatehouse.foundation.outbound import Outbound
from gatehouse.foundation.secrets.sealing import CannotOpen, Sealer
from gatehouse.platform.live.ports import sealing_context
from gatehouse.platform.routing.providers.health import CheckOutcome, HealthStatus
from gatehouse.policy.records import Candidate, ModelRecord, ProviderRecord

_MAX_TRIAL_BYTES: Final = 1024 * 1024

#: Statuses of a server that works but offers no list of models.
_NO_MODEL_LIST: Final = frozenset({404, 405, 501})

#: Sentences of reasons that differ from those of requests.
_SENTENCES: Final[Mapping[str, str]] = {
    "credentials_unreadable": "The credentials cannot be opened with the master keys at hand: set them again.",
    "refused": "The provider refuses the test call.",
}


class Prober:
    """Calls providers with their unsealed credentials."""

    def __init__(self, outbound: Outbound, sealer: Sealer) -> None:
        self._outbound = outbound
        self._sealer = sealer

    async def list_models(self, tenant_id: TenantId, provider: ProviderRecord, timeout_ms: int) -> Sequence[FoundModel]:
        """Return the provider's models. Raises `ProviderFailed` for every failure."""
        kind, secret = KINDS.get(provider.kind), self._secret(tenant_id, provider)
        if kind is None or lacks_secret(kind, provider.config, secret):
            raise ProviderFailed("not_configured")
        with_timeout = msgspec.structs.replace(
            provider, config=msgspec.structs.replace(provider.config, timeout_ms=timeout_ms)
        )
        try:
            # Limits the whole call, because the transport's timeout restarts with every chunk.
            async with asyncio.timeout(timeout_ms / 1000):
                return await kind.list_models(self._outbound, with_timeout, secret)
        except TimeoutError:
            raise ProviderFailed("timeout") from None
        except ProviderNotConfigured:
            raise ProviderFailed("not_configured") from None

    async def check(self, tenant_id: TenantId, provider: ProviderRecord, timeout_ms: int) -> CheckOutcome:
        """Run a health check, which is free of charge and calls no model. Failures are in the outcome."""
        started = time.monotonic()
        try:
            await self.list_models(tenant_id, provider, timeout_ms)
        except ProviderFailed as error:
            if error.status not in _NO_MODEL_LIST:
                return _failure(error)
        return _success(started)

    async def try_out(
        self, tenant_id: TenantId, provider: ProviderRecord, model: ModelRecord, timeout_ms: int
    ) -> CheckOutcome:
        """Make a minimal call of a model. Failures are in the outcome."""
        started = time.monotonic()
        dialect, body = _trial(provider, model)
        try:
            async with asyncio.timeout(timeout_ms / 1000):
                reply = await call_provider(
                    DIALECTS[dialect].decode(msgspec.json.encode(body)),
                    Candidate(provider, model),
                    secret=self._secret(tenant_id, provider),
                    outbound=self._outbound,
                    max_response_bytes=_MAX_TRIAL_BYTES,
                )
                await reply.close()
        except TimeoutError:
            return _failure(ProviderFailed("timeout"))
        except ProviderFailed as error:
            return _failure(error)
        return _success(started)

    def _secret(self, tenant_id: TenantId, provider: ProviderRecord) -> Mapping[str, str]:
        if provider.sealed_credentials is None:
            return {}
        try:
            clear = self._sealer.open(provider.sealed_credentials, context=sealing_context(tenant_id, provider.id))
        except CannotOpen:
            raise ProviderFailed("credentials_unreadable") from None
        return msgspec.json.decode(clear, type=dict[str, str])


def _trial(provider: ProviderRecord, model: ModelRecord) -> tuple[str, dict[str, Any]]:
    """Return the dialect and the body of a minimal call."""
    name = f"{provider.id}/{model.model_id}"
    if model.capabilities.get("embeddings"):
        return "openai_embeddings", {"model": name, "input": "ping"}
    kind = KINDS.get(provider.kind)
    limit = "max_tokens" if kind is None else kind.limit_field
    return "openai_chat", {"model": name, "messages": [{"role": "user", "content": "ping"}], limit: 16}


def _success(started: float) -> CheckOutcome:
    elapsed = round((time.monotonic() - started) * 1000, 1)
    return CheckOutcome(status="healthy", checked_at=utc_now(), latency_ms=elapsed)


def _failure(error: ProviderFailed) -> CheckOutcome:
    detail = _SENTENCES.get(error.reason) or sentence(error.reason, error.status)
    status: HealthStatus = "degraded" if error.status is not None else "unreachable"
    return CheckOutcome(status=status, checked_at=utc_now(), error=error.reason, detail=detail)
