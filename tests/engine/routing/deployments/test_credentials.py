"""Deployments that name a credential of their provider."""

from collections import Counter
from collections.abc import Mapping
from typing import Any

import msgspec
from tests.engine.routing.deployments.aliases import alias_record
from tests.support.engine import EngineHarness, completion

from gatehouse.engine.exchange import Answer
from gatehouse.policy.catalog import CredentialRecord, CredentialState

FAST: dict[str, Any] = {"model": "fast", "messages": [{"role": "user", "content": "Hi"}]}
LIMITED = (429, {"retry-after": "30"})


class Account:
    """The alias `fast` with two deployments of one model, by default with the credentials `default` (key `a`) and
    `second` (key `b`). Each key answers as `answers` says: 200 without an entry."""

    def __init__(self, default: Mapping[str, Any] = {}, second: Mapping[str, Any] = {}, **fields: Any) -> None:
        self.harness = EngineHarness(RATE_LIMIT_REQUESTS_PER_MINUTE="100000")
        self.harness.serve("one", "m")
        self.answers: dict[str, tuple[int, Mapping[str, str]]] = {}
        self.set_states()
        self.harness.model_aliases = (
            alias_record(
                "fast",
                {"provider": "one", "credential": "default", **default},
                {"provider": "one", "credential": "second", **second},
                **fields,
            ),
        )

    def set_states(self, *, default: CredentialState = "active", second: CredentialState = "active") -> None:
        self.harness.providers[0] = msgspec.structs.replace(
            self.harness.providers[0],
            sealed_credentials="a",
            credential_state=default,
            credentials=(
                CredentialRecord(label="second", sealed="b", state=second),
                CredentialRecord(label="third", sealed="c"),
            ),
        )

    async def ask(self, model: str = "fast") -> tuple[Answer, str]:
        """Send a request. Return its answer, and the keys that were sent to the provider in their order."""
        outbound = self.harness.outbound
        outbound.sent.clear()
        outbound.script = _Script(self)  # type: ignore[assignment]
        answer = await self.harness.engine.answer(self.harness.request({**FAST, "model": model}))
        return answer, "".join(_key(request.headers) for request in outbound.sent)

    async def keys(self, count: int, model: str = "fast") -> list[str]:
        return [(await self.ask(model))[1] for _ in range(count)]


class _Script:
    """Answers by the key of the request that was sent last."""

    def __init__(self, account: Account) -> None:
        self._account = account

    def pop(self, index: int) -> Any:
        key = _key(self._account.harness.outbound.sent[-1].headers)
        status, headers = self._account.answers.get(key, (200, {}))
        return status, [completion() if status == 200 else b"{}"], headers


def _key(headers: Mapping[str, str]) -> str:
    return headers["Authorization"].removeprefix("Bearer ")


async def test_two_deployments_of_one_model_share_the_requests_by_credential() -> None:
    account = Account({"weight": 3})
    assert Counter(await account.keys(40)) == {"a": 30, "b": 10}
    assert Counter((outcome.credential, outcome.model_alias) for outcome in account.harness.outcomes) == {
        ("default", "fast"): 30,
        ("second", "fast"): 10,
    }
    # The catalog entry itself still uses all credentials in turn.
    assert sorted(await account.keys(3, "one/m")) == ["a", "b", "c"]


async def test_a_conversation_stays_at_the_deployment_of_one_credential() -> None:
    account = Account(sticky=True)
    assert len(set(await account.keys(10))) == 1


async def test_a_rate_limit_moves_the_request_and_the_next_ones_to_the_other_deployment() -> None:
    account = Account()
    account.answers["a"] = LIMITED
    answers = [await account.ask() for _ in range(6)]
    assert {answer.status for answer, _ in answers} == {200}
    # The first attempt with the limited key is the only one.
    assert "".join(keys for _, keys in answers).replace("ab", "b") == "b" * 6
    assert "a" in "".join(keys for _, keys in answers)
    failed = [attempt for outcome in account.harness.outcomes for attempt in outcome.attempts]
    assert [(attempt.status, attempt.credential) for attempt in failed] == [(429, "default")]
    account.answers.clear()
    account.harness.clock.move(31)
    assert set(await account.keys(4)) == {"a", "b"}


async def test_an_exhausted_rate_limit_of_one_credential_moves_the_next_requests() -> None:
    account = Account({"tier": 0}, {"tier": 1})
    account.answers["a"] = (200, {"x-ratelimit-remaining-requests": "0", "x-ratelimit-reset-requests": "20s"})
    assert await account.keys(4) == ["a", "b", "b", "b"]
    account.harness.clock.move(21)
    assert await account.keys(1) == ["a"]


async def test_a_limit_that_another_request_met_moves_the_requests_of_the_alias() -> None:
    account = Account({"tier": 0}, {"tier": 1})
    account.answers["a"] = LIMITED
    await account.keys(3, "one/m")
    assert await account.keys(3) == ["b", "b", "b"]


async def test_each_deployment_has_its_own_circuit() -> None:
    account = Account({"tier": 0}, {"tier": 1})
    account.answers["a"] = (500, {})
    assert await account.keys(5) == ["ab"] * 5
    assert await account.keys(3) == ["b"] * 3
    (circuit,) = account.harness.engine.circuits.open_of(account.harness.caller.tenant_id)["one"]  # type: ignore
    assert (circuit.model, circuit.credential) == ("m", "default")
    # The circuit of the catalog entry is closed.
    account.answers.clear()
    assert sorted(await account.keys(3, "one/m")) == ["a", "b", "c"]


async def test_each_deployment_has_its_own_limits() -> None:
    account = Account({"tier": 0, "requests_per_minute": 2}, {"tier": 1, "requests_per_minute": 1})
    assert await account.keys(3) == ["a", "a", "b"]
    answer, keys = await account.ask()
    assert (answer.status, keys) == (429, "")


async def test_a_deployment_whose_credential_is_disabled_or_removed_is_not_used() -> None:
    account = Account()
    account.set_states(default="disabled")
    assert await account.keys(4) == ["b"] * 4
    account.harness.model_aliases = (
        alias_record("fast", {"provider": "one", "credential": "gone"}, {"provider": "one", "credential": "third"}),
    )
    assert await account.keys(4) == ["c"] * 4


async def test_a_draining_credential_answers_only_if_no_other_deployment_is_available() -> None:
    account = Account()
    account.set_states(default="draining")
    assert await account.keys(3) == ["b"] * 3
    account.answers["b"] = (401, {})
    assert await account.keys(3) == ["ba", "a", "a"]


async def test_the_only_credential_of_a_provider_can_be_named() -> None:
    account = Account()
    account.harness.providers[0] = msgspec.structs.replace(account.harness.providers[0], credentials=())
    assert await account.keys(2) == ["a", "a"]
    assert account.harness.outcomes[-1].credential == "default"


async def test_a_shadow_uses_its_credential() -> None:
    account = Account({}, {"role": "shadow"})
    account.harness.outbound.script = _Script(account)  # type: ignore[assignment]
    await account.harness.engine.answer(account.harness.request(FAST))
    await account.harness.engine.shadows.wait()
    assert [_key(request.headers) for request in account.harness.outbound.sent] == ["a", "b"]
    assert {(outcome.shadow, outcome.credential) for outcome in account.harness.outcomes} == {
        (False, "default"),
        (True, "second"),
    }
