"""The parts of a worker that administration uses besides its own rows. `platform.worker.host` creates them once per
worker; routes get them from `TheHost`."""

from collections.abc import Mapping
from typing import Annotated, Any, Protocol
from uuid import UUID

from cryptography.hazmat.primitives.asymmetric.ec import EllipticCurvePublicKey
from fastapi import Depends, Request

from gatehouse.detection.service.client import DetectionClient
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
from gatehouse.platform.live.nodes import Node
from gatehouse.platform.live.outpost_records import Confirmed, Stored, Upload
from gatehouse.platform.live.replica.feed import Feed
from gatehouse.platform.live.replica.state import Replica
from gatehouse.platform.metrics import PlatformMetrics
from gatehouse.policy.bundles.contents import BundleContents


class TokenSigner(Protocol):
    """Signs tokens and documents. Implemented by `access.signing.Signer`."""

    #: whether the master key fails to open the signing key
    cannot_open: bool

    async def open(self) -> None:
        """Open the signing key ahead of its first use. A failure sets `cannot_open`."""

    async def sign(self, claims: Mapping[str, Any], lifetime_seconds: int, *, audience: str | None = None) -> str:
        """Return a token with these claims and `iss`, `aud` (`audience`, by default this platform), `iat`, `exp`,
        `jti`."""

    async def sign_document(self, document: bytes, *, kind: str) -> str:
        """Return the document signed with the same key; `kind` is the header's `typ`."""


class OutpostSupply(Protocol):
    """Serves policy to outposts and stores their records. Implemented by `platform.publishing.outposts`."""

    async def contents(self, tenant_id: TenantId, at_least: int = 0) -> BundleContents:
        """Return the contents that all outposts of an organization receive, of revision `at_least` or later."""

    async def credentials(
        self, contents: BundleContents, key: EllipticCurvePublicKey, *, tenant_id: TenantId, outpost_id: UUID
    ) -> dict[str, str]:
        """Return the contents' credentials by provider, sealed to an outpost's key; empty if the organization sends
        none."""

    def confirmed(self, confirmation: Confirmed) -> None:
        """Record the version that an outpost reports as in force. Does not block."""

    async def store(self, outpost: Caller, upload: Upload) -> Stored:
        """Store the upload's new records in order, each once. Raises `SequenceGap`, `Unavailable`."""


class Startup:
    """Progress of a worker's start. Times are monotonic seconds."""

    def __init__(self, began: float) -> None:
        self._began = began
        self.phase = "counters"
        self.duration_ms: float | None = None

    def elapsed_ms(self, now: float) -> float:
        return round((now - self._began) * 1000, 1)

    def done(self, now: float) -> None:
        self.phase, self.duration_ms = "done", self.elapsed_ms(now)


class Host(Protocol):
    """The parts of one worker. Implemented by `platform.worker.host.PlatformHost`."""

    settings: Settings
    database: Database
    replica: Replica
    feed: Feed
    node: Node
    counters: Counters
    detectors: DetectionClient
    #: the engine's ports, for families that simulate its decisions
    ports: Ports
    #: for families that call models
    engine: Engine
    journal: JournalWriter
    startup: Startup
    figures: PlatformMetrics
    sealer: Sealer
    cursors: CursorSigner
    outbound: Outbound
    #: HTTP client for webhooks' and alerts' receivers
    receivers: Receivers
    resolver: TxtResolver
    clock: Clock
    passwords: Passwords
    #: typed as a protocol, so that packages below `access` do not import it through this module
    signer: TokenSigner
    supply: OutpostSupply
    later: BackgroundTasks
    #: calls in progress, including those of families that call models
    calls: InProgress
    #: `iss` and default `aud` of the tokens that this platform signs
    issuer: str


async def _host(request: Request) -> Host:
    host: Host = request.app.state.host
    return host


TheHost = Annotated[Host, Depends(_host)]
