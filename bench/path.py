"""Measures the CPU time of each step of a model call inside the engine, in microseconds of one worker's thread.

    .venv/bin/python -m bench.path                       # all measurements, in a minute
    .venv/bin/python -m bench.path --only DLP --profile  # one measurement under cProfile; DLP, 76, stream, stream76
    .venv/bin/python -m bench.path --whole               # one line per measurement, to compare with another checkout
    .venv/bin/python -m bench.path --calls               # calls of Python functions and bytecodes in a request

`DLP` is a call without data-loss prevention, with a prompt of 200 bytes. `76` is a call with the built-in patterns, a
prompt of 1 KB and an answer of 0.8 KB. `stream` and `stream76` are the same calls with streams of 41 and 50 chunks, of
which eight arrive at a time. For a stream, the time of the complete stream is measured with 64 streams at the same
time, and the times of its parts with one stream at a time.

The measurement includes these parts of the platform: an API key in the replica, a rate limit, a budget in dollars whose
ledger grants leases at once, kill switches that are all off, metrics, and a journal on disk. The provider returns
prepared bytes at once. `bench.outbound` and `bench.ingress` measure the cost of sockets and HTTP.

`whole` is a request from its head to its recorded answer, with 64 requests at the same time. The steps are run one
after the other in the order of a request. If each step ran in its own loop, it would take only half as long, because
all of its code would stay in the processor's cache. `between` is the difference between the complete request and the
sum of its steps: tasks, coroutines between the steps, and the write to the journal. The minimum and the median of all
rounds are printed."""

import argparse
import asyncio
import cProfile
import gc
import io
import pstats
import re
import shutil
import statistics
import sys
import tempfile
import time
import timeit
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Mapping, Sequence
from decimal import Decimal
from pathlib import Path
from types import FrameType
from typing import Any, Final, NamedTuple, cast
from uuid import UUID

import msgspec
import uvloop

from gatehouse.engine import answers, pipeline
from gatehouse.engine.conversation.dialects import DIALECTS
from gatehouse.engine.exchange import CallRequest, Exchange, Identified, Received, Routed
from gatehouse.engine.money.quotas import NOTHING
from gatehouse.engine.ports import Ports
from gatehouse.engine.providers import Reply
from gatehouse.engine.rate_limits.selection import PathLimits
from gatehouse.engine.records.outcome import Entry, decode, encode
from gatehouse.engine.run import Engine
from gatehouse.engine.stages.callers import (
    authenticate,
    ip_allowlist,
    rate_limit,
    scope,
)
from gatehouse.engine.stages.calls import budget, dlp_input, dlp_output
from gatehouse.engine.stages.calls.record import Recorder
from gatehouse.engine.verdict import resolved
from gatehouse.foundation.clock import SYSTEM_CLOCK
from gatehouse.foundation.counters.memory import MemoryCounters
from gatehouse.foundation.identity import Role, TenantId
from gatehouse.foundation.ids import new_id
from gatehouse.foundation.journal import JournalWriter
from gatehouse.foundation.outbound import OutboundRequest
from gatehouse.foundation.secrets import tokens
from gatehouse.foundation.secrets.sealing import Sealer
from gatehouse.foundation.settings import Settings
from gatehouse.platform.live.credentials import LiveCredentials
from gatehouse.platform.live.ports import LiveSwitches, SealedSecrets, sealing_context
from gatehouse.platform.live.replica.feed import Feed
from gatehouse.platform.live.replica.state import (
    LiveKey,
    LiveTenant,
    LiveUser,
    Replica,
)
from gatehouse.platform.metrics import PlatformMetrics
from gatehouse.platform.spending.accounts import BudgetAccount, Grant
from gatehouse.platform.spending.spender import Spender
from gatehouse.policy.budgets import BudgetRecord
from gatehouse.policy.catalog import Candidate, ModelRecord, ProviderConfig, ProviderRecord, TenantRecords
from gatehouse.policy.compile import compile_policy
from gatehouse.policy.snapshot import Snapshot

TENANT: Final = TenantId(UUID("00000000-0000-7000-8000-0000000000aa"))
PARALLEL_CALLS: Final = 64
#: time of reading the clock twice, in microseconds
_CLOCK: Final = min(timeit.repeat(time.perf_counter, number=1000, repeat=5)) * 1000
#: requests of a round, and calls of a step in a round; few, so that at least one round is not disturbed by other work
REQUESTS, CALLS = 1280, 400
PLENTY: Final = (10**15, 10**12, 10**15)

#: A request like those of `bench/compare.py`.
SHORT: Final = {
    "model": "openai/gpt-4o-mini",
    "messages": [
        {"role": "system", "content": "You are a helpful assistant. Answer briefly and precisely."},
        {"role": "user", "content": "What is the capital of France, and where in the country does it lie? Please answer"
         " in two short sentences at most."},
    ],
    "temperature": 0.7,
    "max_tokens": 256,
}  # fmt: skip
PROSE: Final = (
    "Please summarise the attached quarterly report for the leadership team; revenue grew by 12 percent in the third "
    "quarter, while costs stayed flat. "
)
LONG: Final = {"model": "openai/gpt-4o-mini", "messages": [{"role": "user", "content": (PROSE * 10)[:1024]}]}


def answer(text: str) -> bytes:
    """Return an answer in the format of OpenAI. With the text of `SHORT`, it has about 850 bytes."""
    return msgspec.json.encode(
        {
            "id": "chatcmpl-C3kP9vY0mWq7dZr2bT5xN8aL1eHs", "object": "chat.completion", "created": 1760000000,
            "model": "gpt-4o-mini-2024-07-18",
            "choices": [
                {
                    "index": 0, "logprobs": None, "finish_reason": "stop",
                    "message": {"role": "assistant", "content": text, "refusal": None, "annotations": []},
                }
            ],
            "usage": {
                "prompt_tokens": 42, "completion_tokens": 33, "total_tokens": 75,
                "prompt_tokens_details": {"cached_tokens": 0, "audio_tokens": 0},
                "completion_tokens_details": {"reasoning_tokens": 0, "audio_tokens": 0},
            },
            "service_tier": "default", "system_fingerprint": "fp_560af6e559",
        }
    )  # fmt: skip


def pieces(text: str) -> list[bytes]:
    """Return the same answer as a stream of up to 50 chunks, with eight chunks in each piece."""
    words = [text[start : start + len(text) // 49 + 1] for start in range(0, len(text), len(text) // 49 + 1)]
    body = {
        "id": "chatcmpl-C3kP9vY0mWq7dZr2bT5xN8aL1eHs", "object": "chat.completion.chunk", "created": 1760000000,
        "model": "gpt-4o-mini-2024-07-18", "service_tier": "default", "system_fingerprint": "fp_560af6e559",
    }  # fmt: skip
    choices: list[dict[str, Any]] = [
        {"index": 0, "delta": {"content": word}, "logprobs": None, "finish_reason": None} for word in words
    ]
    choices.append({"index": 0, "delta": {}, "logprobs": None, "finish_reason": "stop"})
    events = [b"data: " + msgspec.json.encode({**body, "choices": [choice]}) + b"\n\n" for choice in choices]
    usage = {"prompt_tokens": 42, "completion_tokens": 48, "total_tokens": 90}
    events.append(b"data: " + msgspec.json.encode({**body, "choices": [], "usage": usage}) + b"\n\ndata: [DONE]\n\n")
    return [b"".join(events[start : start + 8]) for start in range(0, len(events), 8)]


class Provider:
    """A provider that answers at once with prepared bytes. Implements `Outbound` and `OutboundReply`."""

    status = 200
    headers: Mapping[str, str] = {"content-type": "application/json"}

    def __init__(self, body: bytes, pieces: Sequence[bytes] = ()) -> None:
        self._body = body
        self._pieces = pieces

    async def send(self, request: OutboundRequest) -> "Provider":
        if request.before_first_byte is not None:
            request.before_first_byte()
        return self

    async def read(self, limit: int) -> bytes:
        return self._body

    async def chunks(self) -> AsyncIterator[bytes]:
        for piece in self._pieces:
            yield piece

    async def close(self) -> None: ...


class Generous(Spender):
    """A spender whose ledger has no database and grants every request."""

    async def _request_leases(self, accounts: Iterable[BudgetAccount], *, stopping: bool = False) -> None:
        for account in accounts:
            if (request := account.lease_request(stopping=stopping)) is not None:
                account.apply_grant(request, Grant(PLENTY, NOTHING, PLENTY, NOTHING, exceeded=False), time.monotonic())


class Compiled:
    def __init__(self, snapshot: Snapshot) -> None:
        self._snapshot = snapshot

    async def current(self, tenant_id: TenantId) -> Snapshot:
        return self._snapshot


class World:
    """The parts of one worker that a model call uses."""

    def __init__(
        self, home: Path, request: Mapping[str, Any], answer: bytes, *, inspected: bool, streamed: Sequence[bytes] = ()
    ) -> None:
        self.body = msgspec.json.encode({**request, "stream": True} if streamed else request)
        self.answer_body = answer
        self.inspected = inspected
        sealer = Sealer({"bench": bytes(32)}, "bench")
        replica = Replica()
        self.key = self._caller(replica)
        self.journal = JournalWriter(home / "journal")
        self.metrics = PlatformMetrics(home)
        self.spender = Generous(None, SYSTEM_CLOCK)
        feed = Feed(None, replica, None, None)
        feed.last_contact = float("inf")
        records = self._records(sealer, inspected=inspected)
        compiled = compile_policy(records)
        assert isinstance(compiled, Snapshot), compiled
        self.policy = compiled
        self.ports = Ports(
            credentials=LiveCredentials(replica, issuer="bench", enforce_scopes=True),
            policies=Compiled(compiled),
            limits=PathLimits(Settings.from_environment({"RATE_LIMIT_REQUESTS_PER_MINUTE": "1000000000"})),
            counters=MemoryCounters(),
            switches=LiveSwitches(replica, feed),
            spend=self.spender,
            approvals=None,
            secrets=SealedSecrets(sealer),
            journal=self.journal,
            outbound=Provider(answer, streamed),
            clock=SYSTEM_CLOCK,
            meter=self.metrics,
        )
        self.engine = Engine(self.ports)

    def _caller(self, replica: Replica) -> str:
        minted = tokens.mint_api_key()
        replica.tenants[TENANT] = LiveTenant(TENANT, active=True, custom_rate_limit_rpm=None)
        user = LiveUser(new_id(), TENANT, "bench@example.com", Role.USER, operator=False, active=True)
        replica.users[user.id] = user
        replica.put_key(minted.digest, LiveKey(new_id(), user.id, enabled=True, expires_at=None, scopes=None))
        return minted.plaintext

    def _records(self, sealer: Sealer, *, inspected: bool) -> TenantRecords:
        secret = sealer.seal(b'{"api_key":"sk-of-the-provider-0123456789"}', context=sealing_context(TENANT, "openai"))
        return TenantRecords(
            tenant_id=TENANT,
            revision=1,
            providers=(
                ProviderRecord(
                    id="openai", name="OpenAI", kind="openai", sealed_credentials=secret,
                    config=ProviderConfig(base_url="http://127.0.0.1:9100/v1"),
                ),
            ),
            models=(
                ModelRecord(
                    id=new_id(), provider="openai", model_id="gpt-4o-mini",
                    cost_per_input_token=Decimal("0.00000015"), cost_per_output_token=Decimal("0.0000006"),
                ),
            ),
            feature_flags={"dlp_enabled": inspected},
            budgets=(
                BudgetRecord(
                    id=TENANT, scope_type="tenant", scope_id=TENANT, period="month", limit_usd=Decimal(1_000_000)
                ),
            ),
        )  # fmt: skip

    def request(self) -> Received:
        return Received(
            request_id="req_0123456789abcdef0123456789abcdef",
            method="POST",
            path="/v1/chat/completions",
            headers={"authorization": f"Bearer {self.key}", "content-length": "450", "user-agent": "bench"},
            client_address="192.0.2.1",
            received_at=time.time(),
            started=time.monotonic(),
            dialect="openai_chat",
            body=self.body,
        )

    async def serve(self, requests: int, at_once: int = PARALLEL_CALLS) -> float:
        """Serve requests, and return the CPU microseconds per request."""

        async def some() -> None:
            for _ in range(requests // at_once):
                result = await self.engine.answer(self.request())
                assert result.status == 200, result.body
                if result.stream is not None:
                    async for _ in result.stream:
                        pass

        began = time.thread_time()
        await asyncio.gather(*[some() for _ in range(at_once)])
        return (time.thread_time() - began) / (requests // at_once * at_once) * 1e6

    async def close(self) -> None:
        await self.spender.stop()
        await self.journal.close()


class Row(NamedTuple):
    name: str
    work: Callable[[], Any]
    awaited: bool = False


class Steps:
    """The steps of a request. Each step can be run repeatedly."""

    def __init__(self, world: World) -> None:
        self.world, self.ports = world, world.ports
        self.dialect = DIALECTS["openai_chat"]

    async def prepare(self) -> None:
        ports = self.ports
        self.received = self.world.request()
        identified = await authenticate.identify(self.received, ports, "chat:write")
        assert isinstance(identified, Identified)
        self.identified = identified
        await self._limit()
        self.call_request = self._call_request()
        if self.world.inspected:
            await self._prompt()
        routed = self.world.engine.chooser.choose(self.call_request, ports)
        assert isinstance(routed, Routed)
        self.candidate: Candidate = routed.chain[0]
        self.routed = routed
        self.admitted = pipeline.obeyed(await self._reserve())
        self.exchange = Exchange(
            identified=self.identified, call_request=self.call_request, outcome="success", status=200
        )
        self.reply = await self._attempt()
        self.entry = self._entry()

    def _entry(self) -> Entry[UUID]:
        """Return the record of the request, decoded from the bytes that are written to the journal."""
        journal: list[bytes] = []
        Recorder(msgspec.structs.replace(self.ports, journal=journal)).finished(self.exchange)
        return decode(journal[0])

    def _call_request(self) -> CallRequest:
        body = self.world.body
        return CallRequest(identified=self.identified, call=self.dialect.decode(body), body_bytes=len(body))

    def rows(self) -> list[Row]:
        """Return the steps in the order of a request."""
        ports, request = self.ports, self.call_request
        inspected = [
            Row("DLP on the prompt", self._prompt, True),
            Row("DLP on the answer", self._inspected_answer, True),
        ]
        return [
            Row("the request's own", self.world.request),
            Row("authenticate, policy found", lambda: authenticate.identify(self.received, ports, "chat:write"), True),
            Row("addresses, scope, what budgets have left", self._of_the_caller),
            Row("rate limit", self._limit, True),
            Row("parse and check the body", self._call_request),
            *(inspected[:1] if self.world.inspected else ()),
            Row("route: name, rules, access, switch", lambda: self.world.engine.chooser.choose(request, ports)),
            Row("reserve from the budget", self._reserve, True),
            Row("attempt: deadline, gate, call, usage", self._attempt, True),
            *(inspected[1:] if self.world.inspected else ()),
            Row("price", lambda: self.world.engine._settling.price(self.reply, self.exchange)),
            Row("the answer's headers", lambda: answers.reply_headers(self.reply, self.exchange)),
            Row("settle the budget", lambda: budget.settle(self.exchange, ports)),
            Row("record: made, encoded, queued", lambda: Recorder(ports).finished(self.exchange)),
            Row("  encoding, which is in the record", lambda: encode(self.entry)),
            Row("  metrics, most of which the record counts", self._metrics),
        ]

    def _of_the_caller(self) -> None:
        x, ports = self.identified, self.ports
        ip_allowlist.check(x, ports)
        scope.check(x, ports)
        budget.check(x, ports)

    def _limit(self) -> Awaitable[Any]:
        return resolved(rate_limit.check(self.identified, self.ports))

    def _reserve(self) -> Awaitable[Any]:
        self.call_request.computed.clear()
        return resolved(cast("Any", budget.reserve(self.routed, self.ports)))

    def _attempt(self) -> Awaitable[Reply]:
        return self.world.engine._attempts.answer(self.admitted, self.exchange)

    def _prompt(self) -> Awaitable[Any]:
        return resolved(dlp_input.inspect(self.call_request, self.ports))

    def _metrics(self) -> None:
        self.ports.meter.finished(self.exchange)
        self.world.metrics.http("POST", "/v1/chat/completions", 200, 0.01)

    def _inspected_answer(self) -> Awaitable[Any]:
        return resolved(dlp_output.inspect(self.call_request, self.world.answer_body, self.ports))


async def one_after_the_other(rows: Sequence[Row]) -> dict[str, float]:
    """Return the microseconds of each step when all steps are run in the order of a request. Each call is measured
    separately. Other work on the machine only affects single calls, so the median of all calls is returned."""
    spent: dict[str, list[float]] = {row.name: [] for row in rows}
    clock = time.perf_counter
    for _ in range(CALLS):
        for name, work, awaited in rows:
            began = clock()
            if awaited:
                await work()
            else:
                work()
            spent[name].append(clock() - began)
    return {name: statistics.median(item) * 1e6 - _CLOCK for name, item in spent.items()}


async def table(world: World, rounds: int) -> None:
    steps = Steps(world)
    await steps.prepare()
    rows = steps.rows()
    costs: dict[str, list[float]] = {row.name: [] for row in rows}
    whole = []
    for _ in range(rounds):
        whole.append(await world.serve(REQUESTS))
        for name, cost in (await one_after_the_other(rows)).items():
            costs[name].append(cost)
    print(f"\n{'DLP on, 76 patterns' if world.inspected else 'DLP off':44}{'least':>8}{'median':>8}")
    for name, item in costs.items():
        print(f"{name:44}{min(item):8.2f}{statistics.median(item):8.2f}")
    parts = sum(min(item) for name, item in costs.items() if not name.startswith(" "))
    print(f"{'between':44}{min(whole) - parts:8.2f}")
    print(f"{'whole':44}{min(whole):8.2f}{statistics.median(whole):8.2f}")


async def parts(world: World, rounds: int) -> None:
    """Print the times of the parts of a stream, with one stream at a time: the time until the first events arrive, each
    read of later events, and the end."""
    spent: dict[str, list[list[float]]] = {}
    for _ in range(rounds):
        turn: dict[str, list[float]] = {}
        for _ in range(CALLS):
            began = time.thread_time()
            result = await world.engine.answer(world.request())
            assert result.stream is not None
            name = "up to the first block"
            async for _block in result.stream:
                now = time.thread_time()
                turn.setdefault(name, []).append(now - began)
                name, began = "each later block", now
            turn.setdefault("after the last block", []).append(time.thread_time() - began)
        for name, item in turn.items():
            spent.setdefault(name, []).append(item)
    for name, turns in spent.items():
        costs = [statistics.median(turn) * 1e6 for turn in turns]
        number = len(turns[0]) / CALLS
        print(f"{'  ' + name:44}{min(costs):8.2f}{statistics.median(costs):8.2f}  {number:.0f} per stream")


async def profile(world: World, seconds: float = 3.0) -> None:
    profiler = cProfile.Profile()
    ended = time.monotonic() + seconds
    requests = 0
    profiler.enable()
    while time.monotonic() < ended:
        await world.serve(REQUESTS)
        requests += REQUESTS
    profiler.disable()
    result = io.StringIO()
    pstats.Stats(profiler, stream=result).sort_stats("tottime").print_stats(60)
    lines = [re.sub(r"/\S*/(src|python3\.\d+)/", "", line) for line in result.getvalue().splitlines() if line.strip()]
    print(f"{requests} requests, {'DLP on' if world.inspected else 'DLP off'}; the profiler's own cost is in each call")
    print("\n".join(lines))


async def count(world: World, requests: int = 50) -> None:
    """Print the calls of Python functions and the bytecodes of a request, which do not depend on other work on the
    machine. One request at a time is served."""
    calls = bytecodes = 0

    def trace(frame: FrameType, event: str, _: object) -> Any:
        nonlocal calls, bytecodes
        frame.f_trace_opcodes, frame.f_trace_lines = True, False
        calls += event == "call"
        bytecodes += event == "opcode"
        return trace

    sys.settrace(trace)
    try:
        await world.serve(requests, at_once=1)
    finally:
        sys.settrace(None)
    name = "DLP on" if world.inspected else "DLP off"
    print(f"{name}: {calls / requests:.0f} calls, {bytecodes / requests:.0f} bytecodes")


async def measured(arguments: argparse.Namespace, home: Path) -> None:
    result = (PROSE * 10)[:800]
    worlds: dict[str, tuple[Mapping[str, Any], str, bool, bool]] = {
        "DLP": (SHORT, _CAPITAL, False, False),
        "76": (LONG, result, True, False),
        "stream": (SHORT, _CAPITAL, False, True),
        "stream76": (LONG, result, True, True),
    }
    for name, (request, text, inspected, streamed) in worlds.items():
        if arguments.only not in {None, name}:
            continue
        cut = pieces(text) if streamed else ()
        world = World(home / name, request, answer(text), inspected=inspected, streamed=cut)
        await world.spender.start(world.journal.writer_id)
        await world.serve(PARALLEL_CALLS * 4)
        # A worker does the same.
        gc.collect()
        gc.freeze()
        gc.set_threshold(20_000, 20, 20)
        requests = REQUESTS // 5 if streamed else REQUESTS
        if arguments.profile:
            await profile(world)
        elif arguments.calls:
            await count(world)
        elif arguments.whole or streamed:
            costs = [await world.serve(requests) for _ in range(arguments.rounds)]
            print(f"{name} {min(costs):.2f} {statistics.median(costs):.2f}", flush=True)
            if not arguments.whole:
                await parts(world, arguments.rounds)
        else:
            await table(world, arguments.rounds)
        await world.close()


_CAPITAL: Final = (
    "Paris is the capital of France. It sits on the Seine in the north of the country and has been the seat of "
    "government for most of the last thousand years."
)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", choices=("DLP", "76", "stream", "stream76"))
    parser.add_argument("--rounds", type=int, default=12)
    parser.add_argument("--whole", action="store_true", help="the whole request's cost alone: least and median")
    parser.add_argument("--profile", action="store_true")
    parser.add_argument("--calls", action="store_true", help="count calls and bytecodes instead of time")
    arguments = parser.parse_args()
    home = Path(tempfile.mkdtemp(prefix="gatehouse-bench-"))
    try:
        uvloop.run(measured(arguments, home))
    finally:
        shutil.rmtree(home, ignore_errors=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
