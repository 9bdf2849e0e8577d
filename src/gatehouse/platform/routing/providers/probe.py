"""Calls a provider outside of requests: its list of models, or a minimal call of a model.

Every wait is bounded. Errors are the gateway's own codes and sentences, because a provider's message may repeat the
request.
"""

import asyncio
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from functools import partial
from typing import Any, Final, TypeVar

import msgspec

from gatehouse.engine.conversation.dialects import DIALECTS
from gatehouse.engine.providers import KINDS, ProviderFailed, ProviderModel, ProviderNotConfigured, call_provider
from gatehouse.engine.providers.credentials import lacks_secret
from gatehouse.engine.providers.failure import CREDENTIAL_REASONS, sentence
from gatehouse.foundation.clock import utc_now
from gatehouse.foundation.identity import TenantId
from gatehouse.foundation.outbound import Outbound
from gatehouse.foundation.secrets.sealing import CannotOpen, Sealer
from gatehouse.platform.live.ports import sealing_context
from gatehouse.platform.routing.providers.health import CheckOutcome, HealthStatus
from gatehouse.policy.catalog import Candidate, ModelRecord, ProviderRecord, credential_key
from gatehouse.policy.routing import SPECIAL_USES

_MAX_TRIAL_BYTES: Final = 1024 * 1024
#: Reasons of failures after which the next credential is tried.
_CREDENTIAL_REASONS: Final = CREDENTIAL_REASONS | {"credentials_unreadable"}

#: Statuses of a server that works but offers no list of models.
_NO_MODEL_LIST: Final = frozenset({404, 405, 501})

#: Sentences of reasons that differ from those of requests.
_SENTENCES: Final[Mapping[str, str]] = {
    "credentials_unreadable": "The credentials cannot be opened with the master keys at hand: set them again.",
    "refused": "The provider refuses the test call.",
}


T = TypeVar("T")


class Prober:
    """Calls providers with their unsealed credentials."""

    def __init__(self, outbound: Outbound, sealer: Sealer) -> None:
        self._outbound = outbound
        self._sealer = sealer

    async def list_models(
        self, tenant_id: TenantId, provider: ProviderRecord, timeout_ms: int
    ) -> Sequence[ProviderModel]:
        """Return the provider's models. Raises `ProviderFailed` for every failure."""
        return await self._with_credentials(tenant_id, provider, partial(self._list_models, provider, timeout_ms))

    async def _with_credentials(
        self, tenant_id: TenantId, provider: ProviderRecord, call: Callable[[Mapping[str, str]], Awaitable[T]]
    ) -> T:
        """Make a call with the provider's credentials, one after the other, until one is accepted."""
        failed = ProviderFailed("not_configured")
        for key, sealed in _credentials(provider):
            try:
                return await call(self._secret(tenant_id, key, sealed))
            except ProviderFailed as error:
                failed = error
                if error.reason not in _CREDENTIAL_REASONS:
                    break
        raise failed

    async def _list_models(
        self, provider: ProviderRecord, timeout_ms: int, secret: Mapping[str, str]
    ) -> Sequence[ProviderModel]:
        kind = KINDS.get(provider.kind)
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
        """Make a minimal call of a model, or a health check if its calls are expensive or need a file. Failures are in
        the outcome."""
        started = time.monotonic()
        trial = _trial(provider, model)
        if trial is None:
            return await self.check(tenant_id, provider, timeout_ms)
        dialect, body = trial

        async def call(secret: Mapping[str, str]) -> None:
            reply = await call_provider(
                DIALECTS[dialect].decode(msgspec.json.encode(body)),
                Candidate(provider, model),
                secret=secret,
                outbound=self._outbound,
                max_response_bytes=_MAX_TRIAL_BYTES,
            )
            await reply.close()

        try:
            async with asyncio.timeout(timeout_ms / 1000):
                await self._with_credentials(tenant_id, provider, call)
        except TimeoutError:
            return _failure(ProviderFailed("timeout"))
        except ProviderFailed as error:
            return _failure(error)
        return _success(started)

    def _secret(self, tenant_id: TenantId, key: str, sealed: str | None) -> Mapping[str, str]:
        if sealed is None:
            return {}
        try:
            clear = self._sealer.open(sealed, context=sealing_context(tenant_id, key))
        except CannotOpen:
            raise ProviderFailed("credentials_unreadable") from None
        return msgspec.json.decode(clear, type=dict[str, str])


def _credentials(provider: ProviderRecord) -> list[tuple[str, str | None]]:
    """Return the names of the credentials in use with their sealed texts; only the default one may have no text."""
    default = None if provider.credential_state == "disabled" else (provider.id, provider.sealed_credentials)
    further = [
        (credential_key(provider.id, entry.label), entry.sealed)
        for entry in provider.credentials
        if entry.state != "disabled"
    ]
    keeps_default = default is not None and (default[1] is not None or not further)
    return [default, *further] if default is not None and keeps_default else list(further)


#: By the use of a model: the dialect and the body of a minimal call.
_TRIALS: Final[Mapping[str, tuple[str, dict[str, Any]]]] = {
    "embeddings": ("openai_embeddings", {"input": "ping"}),
    "moderation": ("openai_moderations", {"input": "ping"}),
    "rerank": ("cohere_rerank", {"query": "ping", "documents": ["ping"]}),
}


def _trial(provider: ProviderRecord, model: ModelRecord) -> tuple[str, dict[str, Any]] | None:
    """Return the dialect and the body of a minimal call. Returns None if the calls of the model are expensive or need a
    file."""
    name = f"{provider.id}/{model.model_id}"
    uses = [use for use in SPECIAL_USES if model.capabilities.get(use)]
    if uses:
        trial = next((_TRIALS[use] for use in uses if use in _TRIALS), None)
        return None if trial is None else (trial[0], {"model": name, **trial[1]})
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
