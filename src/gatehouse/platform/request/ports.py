"""The parts of a worker that administration uses in addition to its own rows. `platform.worker.host` creates them once
for each worker. Routes receive them as `TheHost`."""

from collections.abc import Mapping
from typing import Annotated, Any, Protocol
from uuid import UUID

from cryptography.hazmat.primitives.asymmetric.ec import EllipticCurvePublicKey
from fastapi import Depends, Request

from gatehouse.detection.service.client import DetectionClient
from gatehouse.engine.mcp.stdio.client import StdioClient
from gatehouse.engine.ports import Counters, Ports
from gatehouse.engine.run import Engine
from gatehouse.foundation.clock import Clock
from gatehouse.foundation.egress.dns import TxtResolver
from gatehouse.foundation.http.lists import CursorSigner
from gatehouse.foundation.identity import Caller, TenantId
from gatehouse.foundation.journal.writer import JournalWriter
from gatehouse.foundation.outbound import Outbound
from gatehouse.foundation.outbound.receivers import Receivers
from gatehouse.foundation.secrets.passwords import Passwords
from gatehouse.foundation.secrets.sealing import Sealer
from gatehouse.foundation.settings import Settings
from gatehouse.foundation.storage.database import Database
from gatehouse.ingress.in_progress import InProgress
from gatehouse.platform.background.tasks import BackgroundTasks
from gatehouse.platform.live.credentials import LiveCredentials
from gatehouse.platform.live.nodes import Node
from gatehouse.platform.live.outpost_records import OutpostConfirmation, Stored, Upload
from gatehouse.platform.live.replica.feed import Feed
from gatehouse.platform.live.replica.state import Replica
from gatehouse.platform.metrics import PlatformMetrics
from gatehouse.platform.spending.spender import Spender
from gatehouse.policy.bundles.contents import BundleContents


class TokenSigner(Protocol):
    """Signs tokens and documents. `access.signing.Signer` implements it."""

    #: whether the master key fails to open the signing key
    cannot_open: bool

    async def open(self) -> None:
        """Open the signing key before its first use. A failure sets `cannot_open`."""

    async def sign(self, claims: Mapping[str, Any], lifetime_seconds: int, *, audience: str | None = None) -> str:
        """Return a token with these claims and with `iss`, `aud`, `iat`, `exp` and `jti`. `aud` is `audience`, or by
        default this platform."""

    async def sign_document(self, document: bytes, *, kind: str) -> str:
        """Return the document, signed with the same key. `kind` is the `typ` of the header."""


class OutpostSupply(Protocol):
    """Serves policies to outposts and stores their records. `platform.publishing.outposts` implements it."""

    async def contents(self, tenant_id: TenantId, at_least: int = 0) -> BundleContents:
        """Return the contents that all outposts of an organization receive. Their revision is `at_least` or later."""

    async def credentials(
        self, contents: BundleContents, key: EllipticCurvePublicKey, *, tenant_id: TenantId, outpost_id: UUID
    ) -> dict[str, str]:
        """Return the credentials in the contents by provider, sealed to an outpost's key. Empty if the organization
        sends no credentials."""

    def confirmed(self, confirmation: OutpostConfirmation) -> None:
        """Record the version that an outpost reports to be active. Does not block."""

    async def store(self, outpost: Caller, upload: Upload) -> Stored:
        """Store the new records of the upload in order, each of them once. Raises `SequenceGap` and `Unavailable`."""


class Startup:
    """The progress of a worker's start. Times are monotonic, in seconds."""

    def __init__(self, began: float) -> None:
        self._began = began
        self.phase = "counters"
        self.duration_ms: float | None = None

    def elapsed_ms(self, now: float) -> float:
        return round((now - self._began) * 1000, 1)

    def done(self, now: float) -> None:
        self.phase, self.duration_ms = "done", self.elapsed_ms(now)


class Host(Protocol):
    """The parts of one worker. `platform.worker.host.PlatformHost` implements it."""

    settings: Settings
    database: Database
    replica: Replica
    feed: Feed
    node: Node
    counters: Counters
    detectors: DetectionClient
    #: None if this host runs no MCP servers
    stdio: StdioClient | None
    #: the engine's ports, for families that simulate the engine's decisions
    ports: Ports
    #: the engine, for families that call models
    engine: Engine
    credentials: LiveCredentials
    spender: Spender
    journal: JournalWriter
    startup: Startup
    metrics: PlatformMetrics
    sealer: Sealer
    cursors: CursorSigner
    outbound: Outbound
    #: HTTP client for the receivers of webhooks and alerts
    receivers: Receivers
    resolver: TxtResolver
    clock: Clock
    passwords: Passwords
    #: the type is a protocol, so that packages below `access` do not import `access` through this module
    signer: TokenSigner
    supply: OutpostSupply
    later: BackgroundTasks
    #: calls in progress, including calls by families that call models
    calls: InProgress
    #: `iss` and the default `aud` of the tokens that this platform signs
    issuer: str


async def _host(request: Request) -> Host:
    host: Host = request.app.state.host
    return host


TheHost = Annotated[Host, Depends(_host)]
