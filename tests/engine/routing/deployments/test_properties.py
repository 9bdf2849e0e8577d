"""Properties of deployments with any weights and limits and of requests at any times, through the whole engine."""

from collections import Counter
from collections.abc import AsyncIterator
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st
from tests.engine.routing.deployments.aliases import alias_record
from tests.support.engine import EngineHarness, completion, events

from gatehouse.engine.exchange import Answer

MINUTE = 60.0
INPUT_TOKENS = 5
CIRCUIT_FAILURES = 5
CIRCUIT_SECONDS = 10
NAMES = ("one", "two", "three")
JsonObject = dict[str, Any]


class Vendors(list[Any]):
    """A script for the network: each request is answered, except for those to a vendor in `failing`."""

    def __init__(self, harness: EngineHarness) -> None:
        super().__init__()
        self.failing: set[str] = set()
        self._harness = harness
        harness.outbound.script = self

    @property
    def called(self) -> list[str]:
        return [request.url.removeprefix("http://").partition(".")[0] for request in self._harness.outbound.sent]

    def pop(self, index: Any = -1) -> Any:
        if self.called[-1] in self.failing:
            return 500, [b"{}"]
        body = self._harness.outbound.sent[-1].body or b""
        return (200, events("a")) if b'"stream":true' in body else (200, [completion(usage=(INPUT_TOKENS, 5))])


class Requests:
    """Sends requests to the alias `fast` of the harness."""

    def __init__(self, *deployments: JsonObject) -> None:
        self.harness = EngineHarness(RATE_LIMIT_REQUESTS_PER_MINUTE="100000")
        for name in NAMES:
            self.harness.serve(name, "m")
        self.harness.model_aliases = (alias_record("fast", *deployments),)
        self.vendors = Vendors(self.harness)

    async def send(self, **fields: Any) -> tuple[Answer, list[str]]:
        """Return the answer to one request, and the providers that were called for it."""
        self.harness.outbound.sent.clear()
        message = {"role": "user", "content": "Hi"}
        answer = await self.harness.engine.answer(
            self.harness.request({"model": "fast", "messages": [message], **fields})
        )
        return answer, self.vendors.called


limits = st.fixed_dictionaries(
    {"weight": st.integers(0, 9), "tier": st.integers(0, 2)},
    optional={
        "requests_per_minute": st.integers(1, 5),
        "tokens_per_minute": st.integers(20, 1_000),
        "max_concurrent_requests": st.integers(1, 3),
    },
)
#: the seconds before a request, its output limit, and whether it is a stream that stays open
arrivals = st.lists(
    st.tuples(st.sampled_from([0.0, 0.4, 3.0, 20.0, 59.5]), st.integers(1, 300), st.booleans()), min_size=5, max_size=30
)


@settings(max_examples=40)
@given(st.lists(limits, min_size=1, max_size=3), arrivals, st.data())
async def test_no_deployment_exceeds_its_limits(
    records: list[JsonObject], requests: list[tuple[float, int, bool]], data: st.DataObject
) -> None:
    deployments = {name: {"provider": name, **record} for name, record in zip(NAMES, records, strict=False)}
    sender = Requests(*deployments.values())
    clock = sender.harness.clock
    admitted: dict[str, list[float]] = {name: [] for name in deployments}
    used: dict[str, list[tuple[float, int]]] = {name: [] for name in deployments}
    streams: list[tuple[str, AsyncIterator[bytes]]] = []
    for pause, max_tokens, is_stream in requests:
        clock.move(pause)
        if streams and data.draw(st.booleans(), label="a stream ends"):
            _, stream = streams.pop(0)
            async for _ in stream:
                pass
        answer, called = await sender.send(max_tokens=max_tokens, stream=is_stream)
        assert (answer.status, bool(called)) in {(200, True), (429, False)}
        if answer.status == 429:
            continue
        (name,) = called
        now = clock.monotonic()
        admitted[name].append(now)
        used[name].append((now, INPUT_TOKENS + min(max_tokens, 5)))
        if answer.stream is not None:
            streams.append((name, answer.stream))
        deployment = deployments[name]
        in_minute = sum(time > now - MINUTE for time in admitted[name])
        tokens = sum(amount for time, amount in used[name] if time > now - MINUTE)
        in_progress = Counter(provider for provider, _ in streams)[name]
        assert in_minute <= deployment.get("requests_per_minute", in_minute)
        assert tokens <= deployment.get("tokens_per_minute", tokens)
        assert in_progress <= deployment.get("max_concurrent_requests", in_progress)
    for _, stream in streams:
        async for _ in stream:
            pass


@settings(max_examples=15)
@given(st.lists(st.integers(1, 20), min_size=2, max_size=3), st.integers(1, 4))
async def test_a_deployment_has_its_share_again_after_one_probe(weights: list[int], failed_probes: int) -> None:
    sender = Requests(*({"provider": name, "weight": weight} for name, weight in zip(NAMES, weights, strict=False)))
    broken, share = NAMES[0], weights[0] / sum(weights)
    sender.vendors.failing = {broken}
    failures = 0
    while failures < CIRCUIT_FAILURES:
        failures += broken in (await sender.send())[1]
    for _ in range(failed_probes):
        sender.harness.clock.move(CIRCUIT_SECONDS + 0.1)
        calls = [name for _ in range(60) for name in (await sender.send())[1]]
        assert calls.count(broken) == 1, "one request probes the deployment"
    sender.harness.clock.move(CIRCUIT_SECONDS + 0.1)
    sender.vendors.failing = set()
    while broken not in (await sender.send())[1]:
        pass
    answers = [name for _ in range(300) for name in (await sender.send())[1]]
    assert abs(answers.count(broken) / 300 - share) < 0.02
