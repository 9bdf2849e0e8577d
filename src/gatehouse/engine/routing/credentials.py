"""The credentials of a provider, in the order in which a request uses them (docs/providers.md).

The active credentials of a provider are used in turn. A credential that the provider refused, or whose rate limit is
exhausted, rests for a while: requests use the others. A draining credential is used only if no active one is available.
A deployment of a model alias can name one credential, and its requests then use no other.
"""

import hashlib
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from typing import Final, NamedTuple

import msgspec

from gatehouse.engine.ports import Secrets
from gatehouse.engine.providers.failure import RATE_LIMITED, ProviderFailed
from gatehouse.engine.routing.circuits import CircuitKey
from gatehouse.engine.routing.cooldowns import DEFAULT_COOLDOWN_SECONDS, UNAUTHORIZED_COOLDOWN_SECONDS, Cooldowns
from gatehouse.foundation.clock import Clock
from gatehouse.foundation.errors import Unavailable
from gatehouse.foundation.identity import TenantId
from gatehouse.foundation.processes.shared_times import SharedTimes
from gatehouse.policy.catalog import DEFAULT_CREDENTIAL, Candidate, ProviderRecord, credential_key

#: Maximum number of providers whose credentials are kept. Those that were called last are kept.
MAX_PROVIDERS: Final = 10_000


class Credential(NamedTuple):
    """A credential for one attempt. `label` is None if the provider has only one, and no deployment specifies it. `key`
    identifies it to the port `Secrets`, and `sealed` is its sealed text. `version` differs between secrets, so that a
    new secret does not rest because the previous secret failed."""

    label: str | None
    key: str
    sealed: str | None
    version: int = 0


class _Usable:
    """The credentials of a provider that can be used, and the number of turns that were taken. They contain no secret
    in plain text."""

    __slots__ = ("active", "draining", "provider", "turn")

    def __init__(self, provider: ProviderRecord, active: list[Credential], draining: list[Credential]) -> None:
        self.provider = provider
        self.active = active
        self.draining = draining
        self.turn = -1


class Credentials:
    """The credentials of one worker: which is next in turn, and which rest. The workers of a machine share which
    credentials rest."""

    def __init__(self, clock: Clock, secrets: Secrets, shared: SharedTimes | None = None) -> None:
        self._secrets = secrets
        self._cooldowns = Cooldowns(clock, shared, "credential")
        self._by_provider: OrderedDict[tuple[TenantId, str], _Usable] = OrderedDict()

    def __len__(self) -> int:
        """Return the number of providers whose credentials are kept."""
        return len(self._by_provider)

    def in_turn(self, tenant_id: TenantId, candidate: Candidate) -> Sequence[Credential]:
        """Return the credentials that a request tries, the first choice first. If all of them rest, the one whose rest
        ends first is tried nevertheless. The result is empty if none can be used."""
        provider, label = candidate.provider, candidate.credential
        if not provider.credentials or provider.config.use_instance_role:
            # Most providers have only this one. The identity of the machine replaces all of them.
            only = Credential(label, provider.id, provider.sealed_credentials)
            return () if provider.credential_state == "disabled" else (only,)
        usable = self._usable(tenant_id, provider)
        if label is not None:
            return _named(usable, label)
        ready, spare = usable.active, usable.draining
        if self._cooldowns:
            ready = [credential for credential in ready if not self._rest_of(tenant_id, candidate, credential)]
            spare = [credential for credential in spare if not self._rest_of(tenant_id, candidate, credential)]
        if not ready and not spare:
            resting = sorted(
                (*usable.active, *usable.draining),
                key=lambda credential: self._rest_of(tenant_id, candidate, credential),
            )
            return resting[:1]
        if len(ready) > 1:
            usable.turn += 1
            first = usable.turn % len(ready)
            ready = ready[first:] + ready[:first]
        return ready + spare

    def is_available(self, tenant_id: TenantId, candidate: Candidate) -> bool:
        """Return whether the credential that the candidate names is active and does not rest. True if it names none."""
        provider, label = candidate.provider, candidate.credential
        if label is None:
            return True
        if provider.state_of(label) != "active":
            return False
        if not provider.credentials:
            return True
        named = _named(self._usable(tenant_id, provider), label)
        return bool(named) and not (self._cooldowns and self._rest_of(tenant_id, candidate, named[0]))

    def failed(
        self, tenant_id: TenantId, candidate: Candidate, credential: Credential, failed: ProviderFailed
    ) -> float | None:
        """Let a credential rest after a failure. A rate limit and a 403 may concern the model alone. Return the same as
        `rest`."""
        if failed.reason == RATE_LIMITED:
            return self.rest(tenant_id, candidate, credential, failed.retry_after)
        of_model = failed.status == 403
        return self.rest(tenant_id, candidate, credential, UNAUTHORIZED_COOLDOWN_SECONDS, of_model=of_model)

    def rest(
        self,
        tenant_id: TenantId,
        candidate: Candidate,
        credential: Credential,
        seconds: float | None,
        *,
        of_model: bool = True,
    ) -> float | None:
        """Let a credential rest, for this model or for all models of the provider. Return None if another credential
        that the candidate may use is available for the model, else the seconds until one is."""
        if seconds is None:
            seconds = DEFAULT_COOLDOWN_SECONDS
        if credential.label is None:
            return seconds
        key = _key(tenant_id, candidate, credential)
        self._cooldowns.begin(key if of_model else key.connections, seconds)
        if candidate.credential is not None:
            return seconds
        usable = self._usable(tenant_id, candidate.provider)
        left = min(
            (self._rest_of(tenant_id, candidate, other) for other in (*usable.active, *usable.draining)),
            default=seconds,
        )
        return left or None

    def _usable(self, tenant_id: TenantId, provider: ProviderRecord) -> _Usable:
        """Return the credentials of the provider that have a secret. On an outpost, some may have none. If none has
        one, return the first credential alone, with which the attempt fails as not configured.

        The secrets are opened once for each record of the provider. Each compiled policy has new records."""
        place = (tenant_id, provider.id)
        usable = self._by_provider.get(place)
        if usable is None or usable.provider is not provider:
            turn = -1 if usable is None else usable.turn
            usable = self._by_provider[place] = self._opened(tenant_id, provider)
            usable.turn = turn
            if len(self._by_provider) > MAX_PROVIDERS:
                self._by_provider.popitem(last=False)
        self._by_provider.move_to_end(place)
        return usable

    def _opened(self, tenant_id: TenantId, provider: ProviderRecord) -> _Usable:
        active: list[Credential] = []
        draining: list[Credential] = []
        first: Credential | None = None
        listed = [(DEFAULT_CREDENTIAL, provider.credential_state, provider.sealed_credentials)]
        listed += [(entry.label, entry.state, entry.sealed) for entry in provider.credentials]
        for label, state, sealed in listed:
            if state == "disabled":
                continue
            credential = Credential(label, credential_key(provider.id, label), sealed)
            first = first or credential
            secret = self._secret(tenant_id, credential)
            if secret:
                credential = credential._replace(version=_version(secret))
                (active if state == "active" else draining).append(credential)
        if first is not None and not active and not draining:
            active.append(first)
        return _Usable(provider, active, draining)

    def _secret(self, tenant_id: TenantId, credential: Credential) -> Mapping[str, str]:
        try:
            return self._secrets.open(tenant_id, credential.key, credential.sealed)
        except Unavailable:
            # This credential cannot be opened under the current master keys. Other credentials may be usable.
            return {}

    def _rest_of(self, tenant_id: TenantId, candidate: Candidate, credential: Credential) -> float:
        """Return the seconds for which the credential rests; zero if it is available."""
        key = _key(tenant_id, candidate, credential)
        return max(self._cooldowns.seconds_left(key), self._cooldowns.seconds_left(key.connections))


def _version(secret: Mapping[str, str]) -> int:
    """Return a number that differs between secrets. It is the same in all workers."""
    content = msgspec.json.encode(sorted(secret.items()))
    return int.from_bytes(hashlib.blake2b(content, digest_size=8).digest(), "big")


def _named(usable: _Usable, label: str) -> list[Credential]:
    """Return the credential with this label, or nothing if it has no secret."""
    return [credential for credential in (*usable.active, *usable.draining) if credential.label == label]


def _key(tenant_id: TenantId, candidate: Candidate, credential: Credential) -> CircuitKey:
    return CircuitKey(tenant_id, f"{credential.key}/{credential.version}", candidate.model.model_id)
