"""Which of a provider's credentials a request uses, and when another one is tried."""

from collections import Counter
from collections.abc import Mapping
from typing import Any

import msgspec
import pytest
from tests.support.engine import TENANT, EngineHarness, completion

from gatehouse.engine.exchange import Answer
from gatehouse.engine.routing import credentials
from gatehouse.engine.routing.cooldowns import UNAUTHORIZED_COOLDOWN_SECONDS
from gatehouse.engine.run import Engine
from gatehouse.foundation.identity import TenantId
from gatehouse.foundation.ids import new_id
from gatehouse.policy.catalog import Candidate, CredentialRecord, ModelRecord, ProviderRecord

CHAT: dict[str, Any] = {"model": "one/m", "messages": [{"role": "user", "content": "Hi"}]}
LIMITED: Mapping[str, str] = {"retry-after": "30"}


class Account:
    """A provider with the credentials `default` (key `a`), `second` (key `b`) and `third` (key `c`). Each answers as
    `answers` says: 200 without an entry."""

    def __init__(self, **states: str) -> None:
        self.harness = EngineHarness(RATE_LIMIT_REQUESTS_PER_MINUTE="100000")
        self.harness.serve("one", "m", "n")
        self.harness.serve("two", "m")
        self.answers: dict[str, tuple[int, Mapping[str, str]]] = {}
        #: the credentials whose secret lacks the field that a call needs
        self.unusable: set[str] = set()
        self._open = self.harness.open
        self.harness.open = self._secret  # type: ignore[method-assign]
        self.set(**states)

    def _secret(self, tenant_id: TenantId, key: str, sealed: str | None) -> Mapping[str, str]:
        return {"another_field": "x"} if sealed in self.unusable else self._open(tenant_id, key, sealed)

    def set(self, **states: str) -> None:
        """Set the states of the credentials."""
        further = [
            {"label": label, "state": states.get(label, "active"), "sealed": key}
            for label, key in (("second", "b"), ("third", "c"))
        ]
        changed = {
            "sealed_credentials": "a",
            "credential_state": states.get("default", "active"),
            "credentials": msgspec.convert(further, tuple[CredentialRecord, ...]),
        }
        self.harness.providers[0] = msgspec.structs.replace(self.harness.providers[0], **changed)
        self.harness.revision += 1

    async def ask(self, **more: Any) -> tuple[Answer, str]:
        """Send a request. Return its answer, and the keys that were sent to the provider in their order."""
        outbound = self.harness.outbound
        outbound.sent.clear()
        outbound.script = _Script(self)  # type: ignore[assignment]
        answer = await self.harness.engine.answer(self.harness.request({**CHAT, **more}))
        return answer, "".join(_key(request.headers) for request in outbound.sent)

    async def keys(self, count: int, **more: Any) -> list[str]:
        return [(await self.ask(**more))[1] for _ in range(count)]


class _Script:
    """Answers by the key of the request that was sent last."""

    def __init__(self, account: Account) -> None:
        self._account = account

    def pop(self, index: int) -> Any:
        key = _key(self._account.harness.outbound.sent[-1].headers)
        status, headers = self._account.answers.get(key, (200, {}))
        return status, [completion() if status == 200 else b"{}"], headers


def _key(headers: Mapping[str, str]) -> str:
    return headers.get("Authorization", "Bearer -").removeprefix("Bearer ")


async def test_active_credentials_are_used_in_turn() -> None:
    account = Account()
    assert await account.keys(6) == ["a", "b", "c", "a", "b", "c"]
    account.set(second="disabled")
    assert set(await account.keys(4)) == {"a", "c"}
    assert [outcome.credential for outcome in account.harness.outcomes[:3]] == ["default", "second", "third"]


@pytest.mark.parametrize("status", [401, 403, 429])
async def test_a_request_goes_to_the_next_credential_and_the_refused_one_rests(status: int) -> None:
    account = Account()
    account.answers["a"] = (status, LIMITED)
    answer, keys = await account.ask(fallbacks=["two/m"])
    assert (answer.status, keys) == (200, "ab")
    (outcome,) = account.harness.outcomes
    assert (outcome.provider, outcome.fallbacks, outcome.credential) == ("one", 0, "second")
    assert [(attempt.status, attempt.credential) for attempt in outcome.attempts] == [(status, "default")]
    assert "a" not in "".join(await account.keys(8))
    account.answers.clear()
    account.harness.clock.move(31)
    assert "a" in "".join(await account.keys(3))


async def test_a_request_goes_to_the_next_credential_if_one_lacks_what_the_call_needs() -> None:
    account = Account()
    account.unusable.add("b")
    provider = account.harness.providers[0]
    # A server at an address of its own may need no key.
    config = msgspec.structs.replace(provider.config, base_url=None)
    account.harness.providers[0] = msgspec.structs.replace(provider, kind="openai", config=config)
    account.harness.revision += 1
    assert set("".join(await account.keys(6))) == {"a", "c"}
    assert all(outcome.status == 200 for outcome in account.harness.outcomes)


async def test_the_identity_of_the_machine_replaces_all_credentials() -> None:
    account = Account()
    provider = account.harness.providers[0]
    config = msgspec.structs.replace(provider.config, use_instance_role=True)
    account.harness.providers[0] = msgspec.structs.replace(provider, config=config)
    account.harness.revision += 1
    account.answers = dict.fromkeys("abc", (429, LIMITED))
    assert len((await account.ask())[1]) == 1


async def test_a_rate_limit_rests_a_credential_for_one_model_and_a_refusal_for_all() -> None:
    account = Account()
    account.answers["a"] = (429, LIMITED)
    await account.keys(3)
    account.answers.clear()
    assert "a" in "".join(await account.keys(3, model="one/n"))
    account.answers["a"] = (401, {})
    await account.keys(3, model="one/n")
    account.harness.clock.move(5)
    assert "a" not in "".join(await account.keys(6, model="one/n"))


async def test_a_refused_credential_rests_in_all_workers_of_a_machine() -> None:
    account, other = Account(third="disabled"), Account(third="disabled")
    other.harness.clock = other.harness.ports.clock = account.harness.clock
    other.harness.ports.shared_cooldowns = account.harness.ports.shared_cooldowns
    other.harness.engine = Engine(other.harness.ports)
    account.answers["a"] = (401, {})
    assert (await account.ask())[1] == "ab"
    assert [(await other.ask())[1] for _ in range(3)] == ["b"] * 3
    account.harness.clock.move(UNAUTHORIZED_COOLDOWN_SECONDS)
    assert {(await other.ask())[1] for _ in range(2)} == {"a", "b"}


async def test_the_next_candidate_follows_once_all_credentials_are_refused() -> None:
    account = Account()
    account.answers = dict.fromkeys("abc", (429, LIMITED))
    answer, keys = await account.ask(fallbacks=["two/m"])
    assert (answer.status, keys) == (200, "abc-")
    assert account.harness.outcomes[0].provider == "two"
    # The model of the provider is in a cooldown now: the other one is tried first.
    assert await account.keys(2, fallbacks=["two/m"]) == ["-", "-"]
    # Without another candidate, only the credential whose rest ends first is tried.
    answer, keys = await account.ask()
    assert (answer.status, len(keys)) == (502, 1)
    assert "default" not in answer.body.decode()
    account.harness.clock.move(31)
    account.answers.clear()
    assert await account.keys(1, fallbacks=["two/m"]) != ["-"]


async def test_a_draining_credential_is_used_only_if_no_active_one_is_available() -> None:
    account = Account(default="draining", third="disabled")
    assert await account.keys(4) == ["b"] * 4
    account.answers["b"] = (401, {})
    assert await account.keys(3) == ["ba", "a", "a"]


async def test_an_exhausted_rate_limit_moves_the_next_requests_to_the_other_credential() -> None:
    account = Account(third="disabled")
    account.answers["a"] = (200, {"x-ratelimit-remaining-requests": "0", "x-ratelimit-reset-requests": "20s"})
    assert await account.keys(4, fallbacks=["two/m"]) == ["a", "b", "b", "b"]
    account.answers.clear()
    account.harness.clock.move(21)
    assert set(await account.keys(2)) == {"a", "b"}
    # A 429 that only says when the limit resets.
    account.answers["a"] = (429, {"x-ratelimit-remaining-tokens": "0", "x-ratelimit-reset-tokens": "20s"})
    await account.keys(2)
    account.harness.clock.move(19)
    assert await account.keys(2) == ["b", "b"]
    account.answers.clear()
    account.harness.clock.move(2)
    assert set(await account.keys(2)) == {"a", "b"}


async def test_another_failure_is_not_tried_with_another_credential() -> None:
    account = Account()
    account.answers["a"] = (500, {})
    answer, keys = await account.ask()
    assert (answer.status, keys) == (502, "a")
    account.answers = dict.fromkeys("abc", (404, {}))
    assert len((await account.ask())[1]) == 1


async def test_a_provider_whose_credentials_are_disabled_is_not_called() -> None:
    account = Account(default="disabled", second="disabled", third="disabled")
    answer, keys = await account.ask()
    assert (answer.status, keys) == (502, "")
    assert "not_configured" in answer.body.decode()


async def test_a_credential_without_a_secret_is_not_used() -> None:
    """An outpost may not have all of them."""
    account = Account()
    provider = account.harness.providers[0]
    credentials = tuple(msgspec.structs.replace(entry, sealed=None) for entry in provider.credentials)
    account.harness.providers[0] = msgspec.structs.replace(provider, credentials=credentials)
    assert await account.keys(3) == ["a", "a", "a"]


async def test_a_request_opens_only_the_credential_that_it_uses() -> None:
    account = Account()
    opened: list[str] = []

    def opening(tenant_id: TenantId, key: str, sealed: str | None) -> Mapping[str, str]:
        opened.append(key)
        return account._open(tenant_id, key, sealed)

    account.harness.open = opening  # type: ignore[method-assign]
    await account.keys(1)
    # The first request after a change of the policy checks which credentials have a secret.
    assert Counter(opened) == {"one": 2, "one/second": 1, "one/third": 1}
    opened.clear()
    await account.keys(3)
    assert opened == ["one/second", "one/third", "one"]
    account.set(second="disabled")
    opened.clear()
    await account.keys(1)
    assert len(opened) == 3


async def test_the_number_of_providers_whose_credentials_are_kept_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(credentials, "MAX_PROVIDERS", 2)
    harness = EngineHarness()
    kept = credentials.Credentials(harness.clock, harness)
    further = (CredentialRecord(label="second", sealed="b"),)
    for number in range(4):
        provider = ProviderRecord(id=f"p{number}", name="p", kind="openai", sealed_credentials="a", credentials=further)
        model = ModelRecord(id=new_id(), provider=provider.id, model_id="m")
        assert len(kept.in_turn(TENANT, Candidate(provider, model))) == 2
    assert len(kept) == 2
