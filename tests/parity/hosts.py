"""The ports of a platform and of an outpost with the same policy, and the results of a request on one of them."""

import json
import re
import tempfile
import time
from collections.abc import AsyncIterator, Mapping
from pathlib import Path
from typing import Any
from uuid import UUID

import msgspec
from tests.support.engine import EngineHarness
from tests.support.mcp_engine import META, received

from gatehouse.engine.exchange import Answer, Received
from gatehouse.engine.measures.latency import Latencies
from gatehouse.engine.ports import Ports
from gatehouse.engine.run import Engine
from gatehouse.foundation.identity import Role, TenantId
from gatehouse.foundation.jwt import SigningKey, key_set
from gatehouse.foundation.secrets import tokens
from gatehouse.foundation.secrets.sealing import Sealer
from gatehouse.outpost.host import OutpostHost
from gatehouse.outpost.settings import OutpostSettings
from gatehouse.platform.live.credentials import LiveCredentials
from gatehouse.platform.live.ports import LiveSwitches, SealedSecrets
from gatehouse.platform.live.replica.state import (
    LiveKey,
    LiveTenant,
    LiveUser,
    Replica,
)
from gatehouse.policy.bundles import contents, signing
from gatehouse.policy.bundles.contents import CallerRecords, KeyRecord, UserRecord
from gatehouse.policy.catalog import TenantRecords
from gatehouse.policy.compile import compile_policy
from gatehouse.policy.snapshot import Snapshot

TENANT, OUTPOST = TenantId(UUID(int=11)), UUID(int=12)
USER, KEY_ID = UUID(int=13), UUID(int=14)
KEY = "gk_" + "k" * 40
SIGNER = SigningKey.generate()
#: seals the platform's credentials of providers
SEALER = Sealer({"k": bytes(32)}, "k")


class State(msgspec.Struct, frozen=True):
    """The state of an organization, and the groups of its user."""

    records: TenantRecords
    groups: tuple[UUID, ...] = ()
    switched_off: frozenset[UUID] = frozenset()


class InTouch:
    """A change feed that is up to date."""

    async def before_attempt(self) -> None: ...

    def current(self) -> bool:
        return True


class Compiled:
    def __init__(self, records: TenantRecords) -> None:
        compiled = compile_policy(records)
        assert isinstance(compiled, Snapshot)
        self._snapshot = compiled

    async def current(self, tenant_id: TenantId) -> Snapshot:
        return self._snapshot


def platform_ports(state: State, base: Ports) -> Ports:
    """Return the platform's ports, with state as if it had been read from the database."""
    replica = Replica()
    replica.tenants[TENANT] = LiveTenant(TENANT, active=True, custom_rate_limit_rpm=None)
    replica.users[USER] = LiveUser(
        USER, TENANT, "ada@example.com", Role.USER, operator=False, active=True, groups=state.groups
    )
    replica.put_key(tokens.digest(KEY), LiveKey(KEY_ID, USER, enabled=True, expires_at=None, scopes=None))
    replica.switched_off = set(state.switched_off)
    servers = state.records.mcp_servers
    ids = {server.id for server in servers} | {tool.id for server in servers for tool in server.tools}
    replica.mcp_callable = ids - state.switched_off
    ports = msgspec.structs.replace(base)
    ports.credentials = LiveCredentials(replica, issuer="gatehouse", enforce_scopes=True)
    ports.policies = Compiled(state.records)
    ports.switches = LiveSwitches(replica, InTouch())  # type: ignore[arg-type]
    ports.secrets = SealedSecrets(SEALER)
    return ports


def bundle(state: State) -> str:
    """Return the signed bundle that the platform would send."""
    callers = CallerRecords(
        users=(UserRecord(id=USER, email="ada@example.com", role="user", groups=state.groups),),
        keys=(KeyRecord(id=KEY_ID, user_id=USER, digest=tokens.digest(KEY)),),
    )
    bundle_contents = contents.contents(state.records, msgspec.json.encode(callers), state.switched_off)
    now = int(time.time())
    return signing.sign(
        contents.encode(bundle_contents, outpost_id=OUTPOST, tenant_id=TENANT, issued_at=now, expires_at=now + 60),
        SIGNER,
    )


async def outpost_ports(state: State, base: Ports) -> AsyncIterator[Ports]:
    """Return the outpost's ports, which get the signed bundle. Ports that both hosts share are taken from `base`."""
    with tempfile.TemporaryDirectory() as home:
        read = OutpostSettings(
            gatehouse_home=Path(home), outpost_id=OUTPOST, outpost_airgap=True, outpost_bundle_path=Path(home) / "b",
            outpost_keys_path=Path(home) / "k",
        )  # fmt: skip
        host = OutpostHost(read)
        host.bundles.trust(key_set([SIGNER])["keys"], keep=False)
        assert await host.bundles.take(bundle(state), "file"), host.bundles.status.fault
        own = host.ports
        yield msgspec.structs.replace(
            base, credentials=own.credentials, policies=own.policies, switches=own.switches, secrets=own.secrets,
            limits=own.limits, counters=own.counters, spend=own.spend,
        )  # fmt: skip
        await host.outbound.close()
        await host.journal.close()


def host_engine(ports: Ports, harness: EngineHarness) -> Engine:
    # Measurements of the other host's calls do not belong to the policy.
    return Engine(msgspec.structs.replace(ports, latencies=Latencies(harness.clock)))


async def results(
    engine: Engine, harness: EngineHarness, body: bytes, *, path: str = "/v1/chat/completions",
    dialect: str = "openai_chat",
) -> dict[str, Any]:  # fmt: skip
    """Send a request. Return what the client and the provider receive and what is recorded, without values that differ
    for each call."""
    harness.outbound.sent, harness.entries = [], []
    received = Received(
        request_id="r", method="POST", path=path, headers={"authorization": f"Bearer {KEY}"},
        client_address="192.0.2.1", received_at=harness.clock.now(), started=harness.clock.monotonic(),
        dialect=dialect, body=body,
    )  # fmt: skip
    answer = await engine.answer(received)
    whole = await _whole(answer)
    return {
        "status": answer.status,
        "headers": _kept(answer.headers),
        "body": _without_ids(whole),
        "sent": [(request.url, dict(request.headers), request.body) for request in harness.outbound.sent],
        "outcomes": [_plain(outcome) for outcome in harness.outcomes],
    }


async def tool_results(
    engine: Engine, harness: EngineHarness, path: str, method: str, params: dict[str, Any]
) -> dict[str, Any]:
    """Send a request to MCP servers. Return what the agent and the server receive and what is recorded, without values
    that differ for each call."""
    harness.outbound.sent, harness.tool_calls = [], []
    message = {"jsonrpc": "2.0", "id": 7, "method": method, "params": {**params, "_meta": META}}
    headers = {"authorization": f"Bearer {KEY}", "mcp_protocol_version": "2026-07-28", "mcp_method": method}
    if method == "tools/call":
        headers["mcp_name"] = params["name"]
    body = json.dumps(message).encode()

    async def read() -> bytes:
        return body

    answer = await engine.tools.answer(received(harness, body, path, **headers), read, lambda: None)
    varying = ("id", "latency_ms", "upstream_ms", "timestamp")
    return {
        "status": answer.status,
        "headers": _kept(answer.headers),
        "body": answer.body,
        "sent": [(request.url, dict(request.headers), request.body) for request in harness.outbound.sent],
        "calls": [
            {name: value for name, value in msgspec.structs.asdict(entry).items() if name not in varying}
            for entry in harness.tool_calls
        ],
    }


async def _whole(answer: Answer) -> bytes:
    if answer.stream is None:
        return answer.body
    return b"".join([block async for block in answer.stream])


def _kept(headers: Mapping[str, str]) -> dict[str, str]:
    # Each host has its own limits and budgets, which do not belong to the verdict.
    return {name: value for name, value in headers.items() if not name.startswith(("X-RateLimit-", "X-Budget-"))}


def _without_ids(body: bytes) -> bytes:
    return re.sub(rb'"(id|created)": ?("[^"]*"|\d+)', b"", body)


def _plain(entry: Any) -> dict[str, Any]:
    result: dict[str, Any] = msgspec.structs.asdict(entry)
    for name in ("id", "latency_ms", "provider_latency_ms", "time_to_first_token_ms", "timestamp"):
        del result[name]
    return result
