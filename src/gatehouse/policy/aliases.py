"""Compiles the model aliases of a tenant: names of the organization's own, with the deployments that answer for them
(docs/deployments.md).

A deployment is left out if its catalog entry does not exist or is inactive, or if the credential that it names does not
exist or is disabled. An alias without live deployments remains, so that its name never refers to another model.
"""

from collections.abc import Iterable, Mapping
from typing import Final
from uuid import UUID

import msgspec

from gatehouse.policy.catalog import Balance, Candidate, DeploymentRecord, ModelAliasRecord, ModelRecord, ProviderRecord

#: Pattern of an alias's name. It has no slash, so that it is never a `provider/model-id`.
NAME: Final = r"^[A-Za-z0-9][A-Za-z0-9._:@-]{0,127}$"
#: Maximum number of deployments of an alias.
MAX_DEPLOYMENTS: Final = 32


class Deployment(msgspec.Struct, frozen=True, kw_only=True):
    """A deployment of an alias. `key` identifies it among all deployments of all organizations."""

    alias: str
    key: str
    #: `Candidate.name`
    name: str
    candidate: Candidate
    weight: int
    tier: int
    share: float
    max_concurrent_requests: int | None
    requests_per_minute: int | None
    tokens_per_minute: int | None


class Alias(msgspec.Struct, frozen=True, kw_only=True):
    id: UUID
    name: str
    balance: Balance
    sticky: bool
    #: the deployments that answer requests, those of the lowest tier first
    live: tuple[Deployment, ...]
    shadows: tuple[Deployment, ...]
    #: whether a live deployment has a limit in tokens, so that requests are measured
    counts_tokens: bool


def compile_aliases(
    records: Iterable[ModelAliasRecord], providers: Mapping[str, ProviderRecord], models: Mapping[str, ModelRecord]
) -> dict[str, Alias]:
    """Return the aliases by name. `models` are the catalog entries by `provider/model-id`."""
    return {record.name: _alias(record, providers, models) for record in records}


def _alias(
    record: ModelAliasRecord, providers: Mapping[str, ProviderRecord], models: Mapping[str, ModelRecord]
) -> Alias:
    live: list[Deployment] = []
    shadows: list[Deployment] = []
    for entry in record.deployments:
        name = f"{entry.provider}/{entry.model_id}"
        provider, model = providers.get(entry.provider), models.get(name)
        if provider is not None and model is not None and model.is_active:
            if entry.credential is not None and provider.state_of(entry.credential) in {None, "disabled"}:
                continue
            deployment = _deployment(record, entry, Candidate(provider, model, entry.credential))
            (live if entry.role == "live" else shadows).append(deployment)
    live.sort(key=lambda deployment: deployment.tier)
    return Alias(
        id=record.id,
        name=record.name,
        balance=record.balance,
        sticky=record.sticky,
        live=tuple(live),
        shadows=tuple(shadows),
        counts_tokens=any(deployment.tokens_per_minute is not None for deployment in live),
    )


def _deployment(record: ModelAliasRecord, entry: DeploymentRecord, candidate: Candidate) -> Deployment:
    return Deployment(
        alias=record.name,
        key=f"{record.id}:{candidate.name}",
        name=candidate.name,
        candidate=candidate,
        weight=entry.weight,
        tier=entry.tier,
        share=entry.share,
        max_concurrent_requests=entry.max_concurrent_requests,
        requests_per_minute=entry.requests_per_minute,
        tokens_per_minute=entry.tokens_per_minute,
    )
