"""When a model or a provider is not called after failures, and when it is tried again."""

import asyncio
from typing import Any

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule
from tests.support.clock import HandClock
from tests.support.engine import TENANT, EngineHarness, completion

from gatehouse.engine.exchange import Answer
from gatehouse.engine.routing import circuits as module
from gatehouse.engine.routing.circuits import CircuitKey, Circuits
from gatehouse.engine.routing.cooldowns import DEFAULT_COOLDOWN_SECONDS
from gatehouse.foundation.outbound import ConnectFailed, OutboundTimeout

CHAT: dict[str, Any] = {"model": "one/a", "messages": [{"role": "user", "content": "Hi"}]}
GOOD = (200, [completion()])


def engine(**environment: str) -> EngineHarness:
    harness = EngineHarness(RATE_LIMIT_REQUESTS_PER_MINUTE="1000", **environment)
    harness.serve("one", "a", "b")
    harness.serve("two", "c")
    return harness


async def ask(harness: EngineHarness, model: str, *fallbacks: str) -> Answer:
    return await harness.engine.answer(harness.request({**CHAT, "model": model, "fallbacks": list(fallbacks)}))


async def fail(harness: EngineHarness, times: int, how: Any, model: str = "one/a") -> None:
    for _ in range(times):
        harness.outbound.script = [how]
        await ask(harness, model)
    harness.outbound.script = []
    harness.outbound.sent.clear()


def reasons(harness: EngineHarness) -> list[str]:
    return [attempt.reason for attempt in harness.outcomes[-1].attempts]


@pytest.mark.parametrize("how", [(500, [b"{}"]), (503, [b"{}"]), OutboundTimeout()])
async def test_a_failing_model_does_not_affect_other_models_of_its_provider(how: Any) -> None:
    harness = engine()
    await fail(harness, 5, how)
    harness.outbound.script = [GOOD, GOOD]
    assert (await ask(harness, "one/b", "two/c")).headers["X-Gateway-Model"] == "b"
    assert (await ask(harness, "one/a", "two/c")).headers["X-Gateway-Model"] == "c"
    assert reasons(harness) == ["circuit_open"]


async def test_no_model_of_an_unreachable_provider_is_called() -> None:
    harness = engine()

    class Unreachable:
        async def send(self, request: Any) -> Any:
            raise ConnectFailed

        async def close(self) -> None: ...

    outbound, harness.ports.outbound = harness.ports.outbound, Unreachable()
    for model in ("one/a", "one/b", "one/a", "one/b", "one/a"):
        await ask(harness, model)
    harness.ports.outbound = outbound
    harness.outbound.script = [GOOD]
    assert (await ask(harness, "one/b", "two/c")).headers["X-Gateway-Model"] == "c"


@pytest.mark.parametrize("status", [400, 401, 403, 404, 413, 422, 429])
async def test_a_4xx_answer_of_the_provider_never_opens_a_circuit(status: int) -> None:
    harness = engine()
    await fail(harness, 20, (status, [b"{}"]))
    # A 429 begins a cooldown, which is no open circuit.
    harness.clock.move(DEFAULT_COOLDOWN_SECONDS)
    harness.outbound.script = [GOOD]
    assert (await ask(harness, "one/a", "two/c")).headers["X-Gateway-Model"] == "a"


async def test_a_4xx_answer_between_failures_does_not_reset_their_count() -> None:
    harness = engine()
    for _ in range(5):
        await fail(harness, 1, (500, [b"{}"]))
        await fail(harness, 1, (400, [b"{}"]))
    harness.outbound.script = [GOOD]
    assert (await ask(harness, "one/a", "two/c")).headers["X-Gateway-Model"] == "c"


async def test_a_model_with_an_open_circuit_is_called_if_there_is_no_other_candidate() -> None:
    harness = engine()
    await fail(harness, 5, (500, [b"{}"]))
    harness.outbound.script = [GOOD]
    answer = await ask(harness, "one/a")
    assert (answer.status, answer.headers["X-Gateway-Fallbacks"], reasons(harness)) == (200, "0", [])


async def test_the_last_resort_is_a_model_with_an_open_circuit() -> None:
    harness = engine()
    await fail(harness, 5, (500, [b"{}"]))
    harness.outbound.script = [(429, [b"{}"]), GOOD]
    answer = await ask(harness, "one/a", "two/c")
    assert (answer.status, answer.headers["X-Gateway-Model"]) == (200, "a")
    assert reasons(harness) == ["rate_limited"]


async def test_the_failure_threshold_and_the_open_time_are_settings() -> None:
    harness = engine(CIRCUIT_FAILURES="2", CIRCUIT_SECONDS="3")
    await fail(harness, 2, (500, [b"{}"]))
    harness.outbound.script = [GOOD, GOOD]
    assert (await ask(harness, "one/a", "two/c")).headers["X-Gateway-Model"] == "c"
    harness.clock.move(3)
    assert (await ask(harness, "one/a", "two/c")).headers["X-Gateway-Model"] == "a"


async def test_one_request_probes_an_expired_circuit_and_the_next_one_probes_if_it_is_cancelled() -> None:
    harness = engine()
    await fail(harness, 5, (500, [b"{}"]))
    harness.clock.move(10)
    harness.stop.at = "reading"
    harness.outbound.script = [GOOD]
    first = asyncio.create_task(ask(harness, "one/a", "two/c"))
    await harness.stop.reached.wait()
    harness.stop.at = None
    harness.outbound.script = [GOOD]
    assert (await ask(harness, "one/a", "two/c")).headers["X-Gateway-Model"] == "c"
    first.cancel()
    with pytest.raises(asyncio.CancelledError):
        await first
    harness.outbound.script = [GOOD]
    assert (await ask(harness, "one/a", "two/c")).headers["X-Gateway-Model"] == "a"


async def test_open_circuits_are_reported() -> None:
    harness = engine()
    await fail(harness, 5, (500, [b"{}"]))
    circuits = harness.engine.circuits
    ((provider, (circuit,)),) = circuits.open_of(TENANT).items()
    assert (provider, circuit.model, circuit.state, circuit.failures) == ("one", "a", "open", 5)
    assert (circuits.count_open(connections=False), circuits.count_open(connections=True)) == (1, 0)
    harness.clock.move(10)
    assert circuits.open_of(TENANT)["one"][0].state == "half_open"


def test_the_number_of_circuits_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MAX_CIRCUITS", 3)
    circuits = Circuits(HandClock(), failures=1)
    for number in range(10):
        circuits.failed(CircuitKey(TENANT, "one", f"m{number}"))
        assert len(circuits) <= 3
    assert [circuits.is_open(CircuitKey(TENANT, "one", f"m{number}")) for number in (6, 7, 8, 9)] == [
        False,
        True,
        True,
        True,
    ]


class ExpectedCircuit:
    """The expected state of one circuit: its consecutive failures, and the number of probes in progress."""

    def __init__(self) -> None:
        self.failures = 0
        self.until = 0.0
        self.probes = 0


class CircuitsComparison(RuleBasedStateMachine):
    """Two AI models of one provider. Every attempt ends with one call of `succeeded`, `failed`, `not_connected`,
    `refused` or `released`."""

    def __init__(self) -> None:
        super().__init__()
        self.clock = HandClock()
        self.circuits = Circuits(self.clock, failures=3, seconds=10)
        self.expected: dict[CircuitKey, ExpectedCircuit] = {}
        self.unfinished_attempts: list[CircuitKey] = []

    def _expected_circuit(self, key: CircuitKey) -> ExpectedCircuit:
        return self.expected.setdefault(key, ExpectedCircuit())

    @rule(name=st.sampled_from("ab"))
    def ask(self, name: str) -> None:
        key = CircuitKey(TENANT, "p", name)
        now = self.clock.monotonic()
        due = [
            item
            for item in (self._expected_circuit(key), self._expected_circuit(key.connections))
            if item.failures >= 3
        ]
        expected = all(now >= item.until and not item.probes for item in due)
        assert self.circuits.may_try(key) is expected
        if expected:
            for item in due:
                item.probes += 1
            self.unfinished_attempts.append(key)

    @rule(how=st.sampled_from(["succeeded", "failed", "not_connected", "refused", "released"]), which=st.integers(0, 9))
    def end(self, how: str, which: int) -> None:
        if not self.unfinished_attempts:
            return
        key = self.unfinished_attempts.pop(which % len(self.unfinished_attempts))
        getattr(self.circuits, how)(key)
        model, connections = self._expected_circuit(key), self._expected_circuit(key.connections)
        model.probes = connections.probes = 0
        if how == "succeeded":
            model.failures = 0
        if how in {"succeeded", "failed", "refused"}:
            connections.failures = 0
        for counted in [model] * (how == "failed") + [connections] * (how == "not_connected"):
            counted.failures += 1
            if counted.failures >= 3:
                counted.until = self.clock.monotonic() + 10

    @rule(seconds=st.sampled_from([1.0, 9.0, 10.0, 11.0]))
    def wait(self, seconds: float) -> None:
        self.clock.move(seconds)

    @invariant()
    def is_open_agrees_with_the_expected_circuits(self) -> None:
        now = self.clock.monotonic()
        for name in "ab":
            key = CircuitKey(TENANT, "p", name)
            pair = (self._expected_circuit(key), self._expected_circuit(key.connections))
            assert self.circuits.is_open(key) is any(item.failures >= 3 and now < item.until for item in pair)


CircuitsComparison.TestCase.settings = settings(max_examples=100, stateful_step_count=40)
TestCircuits = CircuitsComparison.TestCase
