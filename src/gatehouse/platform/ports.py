"""What administration reaches besides its own rows: made once a worker by `platform.host`, found by the routes here."""

from collections.abc import Mapping
from typing import Annotated, Any, Protocol
from uuid import UUID

from cryptography.hazmat.primitives.asymmetric.ec import EllipticCurvePublicKey
from fastapi import Depends, Request

from gatehouse.detection.service.client import DetectionClient
from gatehouse.engine.ports import Counters, Ports
from gatehouse.engine.run import Engine
from gatehouse.foundation.clock import Clock
from gatehouse.foundation.dns import TxtResolver
from gatehouse.foundation.http.lists import CursorSigner
from gatehouse.foundation.identity import Caller, TenantId
from gatehouse.foundation.journal.writer import JournalWriter
from gatehouse.foundation.outbound import Outbound
from gatehouse.foundation.passwords import Passwords
from gatehouse.foundation.receivers import Receivers
from gatehouse.foundation.sealing import Sealer
from gatehouse.foundation.settings import Settings
from gatehouse.foundation.storage.database import Database
from gatehouse.ingress.in_progress import InProgress
from gatehouse.platform.later import Later
from gatehouse.platform.live.feed import Feed
from gatehouse.platform.live.nodes import Node
from gatehouse.platform.live.state import Replica
from gatehouse.platform.metrics import Figures
from gatehouse.platform.uploads import Confirmed, Stored, Upload
from gatehouse.policy.wire import Contents


class TokenSigner(Protocol):
    """See `access.signing.Signer`."""

    #: The master key does not open the key that signs.
    cannot_open: bool

    async def open(self) -> None:
        """Opens the key ahead. What fails shows in `cannot_open`."""

    async def sign(self, claims: Mapping[str, Any], lifetime_seconds: int, *, audience: str | None = None) -> str:
        """A token with these claims and `iss`, `aud` (this platform without an `audience`), `iat`, `exp`, `jti`."""

    async def sign_document(self, document: bytes, *, kind: str) -> str:
        """Any bytes, signed by the same key; `kind` is the header's `typ`."""


class OutpostSupply(Protocol):
    """What outposts get, and hand in. See `platform.supply`."""

    async def contents(self, tenant_id: TenantId, at_least: int = 0) -> Contents:
        """What all outposts of an organization are sent, of this revision or a later one."""

    async def credentials(
        self, contents: Contents, key: EllipticCurvePublicKey, *, tenant_id: TenantId, outpost_id: UUID
    ) -> dict[str, str]:
        """The contents' credentials sealed to an outpost's key, by provider; none where the organization sends none."""

    def confirmed(self, said: Confirmed) -> None:
        """An outpost has said what it has in force. Waits for nothing."""

    async def store(self, outpost: Caller, upload: Upload) -> Stored:
        """Stores what is new of it, once each, in order. Raises `SequenceGap`, `Unavailable`."""


class Startup:
    """How far a worker's start has come; times are monotonic seconds."""

    def __init__(self, began: float) -> None:
        self._began = began
        self.phase = "counters"
        self.duration_ms: float | None = None

    def elapsed_ms(self, now: float) -> float:
        return round((now - self._began) * 1000, 1)

    def done(self, now: float) -> None:
        self.phase, self.duration_ms = "done", self.elapsed_ms(now)


class Host(Protocol):
    """One worker's parts."""

    settings: Settings
    database: Database
    replica: Replica
    feed: Feed
    node: Node
    counters: Counters
    detectors: DetectionClient
    #: what the engine reaches: for those who try out what it would do
    ports: Ports
    #: for families that call models themselves
    engine: Engine
    journal: JournalWriter
    startup: Startup
    figures: Figures
    sealer: Sealer
    cursors: CursorSigner
    outbound: Outbound
    #: to where customers want to hear of things
    receivers: Receivers
    resolver: TxtResolver
    clock: Clock
    passwords: Passwords
    #: typed as a protocol, so that chapters below `access` do not reach up to it through here
    signer: TokenSigner
    supply: OutpostSupply
    later: Later
    #: in which families that call models count theirs
    calls: InProgress
    #: `iss` and `aud` of every token this platform signs
    issuer: str


def _host(request: Request) -> Host:
    host: Host = request.app.state.host
    return host


TheHost = Annotated[Host, Depends(_host)]
