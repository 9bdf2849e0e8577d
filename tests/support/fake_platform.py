"""A platform with only the three calls for outposts, and with real signatures. It sends the bundle that the test sets,
valid or not."""

import json
import threading
import time
from collections.abc import Mapping
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import SimpleNamespace
from typing import Any
from uuid import UUID, uuid4

import msgspec
from tests.support.outposts import Authority

from gatehouse.foundation.identity import TenantId
from gatehouse.foundation.jwt import SigningKey, key_set
from gatehouse.foundation.secrets import tokens
from gatehouse.policy.bundles import signing
from gatehouse.policy.bundles.contents import (
    KIND,
    CallerRecords,
    KeyRecord,
    UserRecord,
)
from gatehouse.policy.catalog import ModelRecord, ProviderRecord, TenantRecords
from gatehouse.policy.governance import FilterRecord, GovernanceRecords

KEY = "gk_" + "b" * 40
TENANT, USER = TenantId(UUID(int=21)), UUID(int=22)
_PROVIDER = ProviderRecord(id="sandbox", name="Sandbox", kind="sandbox")
#: the second model streams an answer that is very long
_MODELS = (
    ModelRecord(id=UUID(int=23), provider="sandbox", model_id="echo", is_default=True),
    ModelRecord(id=UUID(int=26), provider="sandbox", model_id="stream-10000"),
)
_CALLERS = CallerRecords(
    users=(UserRecord(id=USER, email="a@b.example", role="admin"),),
    keys=(KeyRecord(id=UUID(int=24), user_id=USER, digest=tokens.digest(KEY)),),
)


class FakePlatform:
    """Can be used instead of a `Trust` for an `OutpostServer`. It trusts every outpost.

    with FakePlatform() as platform, OutpostServer(platform) as outpost: ...
    """

    def __init__(self) -> None:
        self.authority = Authority()
        self.serials: dict[UUID, list[str]] = {}
        self.verify = True
        self.signer = SigningKey.generate()
        #: published in addition to the key of `signer`
        self.more_keys: list[SigningKey] = []
        self._changed = threading.Condition()
        self._sent: tuple[str, str] | None = None
        #: the number of requests for a bundle
        self.polls = 0
        self._http = _Server(("127.0.0.1", 0), type("Handler", (_Handler,), {"platform": self}))
        self.server = SimpleNamespace(url=f"http://127.0.0.1:{self._http.server_address[1]}", key=KEY)

    def tell(self) -> None:
        """Do nothing, because this platform trusts every outpost."""

    def bundle(self, outpost_id: UUID, version: int, /, *, blocked: str = "", **fields: Any) -> bytes:
        """Return a bundle document. `fields` replace its fields. `blocked` is a word that its policy refuses."""
        now = int(time.time())
        keywords = (FilterRecord(
            id=UUID(int=25), name="word", filter_type="keyword_block", priority=1, keywords=(blocked,)
        ),) if blocked else ()  # fmt: skip
        policy = TenantRecords(
            tenant_id=TENANT, revision=0, providers=(_PROVIDER,), models=_MODELS,
            governance=GovernanceRecords(filters=keywords),
        )  # fmt: skip
        return msgspec.json.encode(
            {
                "kind": KIND, "version": version, "issued_at": now, "expires_at": now + 7 * 86_400,
                "outpost_id": outpost_id, "tenant_id": TENANT, "policy": policy, "callers": _CALLERS,
                "switched_off": [], **fields,
            }
        )  # fmt: skip

    def send(self, document: bytes, *, signer: SigningKey | None = None) -> str:
        """Send this document from now on. Returns it signed."""
        signed = signing.sign(document, signer or self.signer)
        self.send_signed(signed)
        return signed

    def send_signed(self, signed: str) -> None:
        with self._changed:
            self._sent = (f'"{uuid4().hex}"', signed)
            self._changed.notify_all()

    def wait(self, known: str, seconds: float) -> tuple[str, str] | None:
        """Wait for a bundle other than `known` and return it, or None after the time."""
        with self._changed:
            self.polls += 1
            self._changed.wait_for(lambda: self._sent is not None and self._sent[0] != known, min(seconds, 2.0))
            return self._sent if self._sent is not None and self._sent[0] != known else None

    def published(self) -> dict[str, Any]:
        return key_set([self.signer, *self.more_keys])

    def __enter__(self) -> "FakePlatform":
        threading.Thread(target=self._http.serve_forever, daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self._http.shutdown()
        self._http.server_close()


class _Server(ThreadingHTTPServer):
    def handle_error(self, request: Any, client_address: Any) -> None:
        """Ignore errors, because an outpost that stops closes the connection during a long poll."""


class _Handler(BaseHTTPRequestHandler):
    platform: FakePlatform
    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:
        path, _, query = self.path.partition("?")
        if path == "/.well-known/jwks.json":
            self._answer(200, json.dumps(self.platform.published()).encode())
        elif path == "/v1/outposts/policy-bundle":
            sent = self.platform.wait(self.headers.get("If-None-Match", ""), float(query.removeprefix("wait=")))
            if sent is None:
                self._answer(304)
            else:
                self._answer(200, sent[1].encode(), {"ETag": sent[0]})
        else:
            self._answer(404)

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        count = len(body["entries"])
        answer = {"next_sequence": body["sequence"] + count, "stored": count, "rejected": []}
        self._answer(200, json.dumps(answer).encode())

    def _answer(self, status: int, body: bytes = b"", headers: Mapping[str, str] | None = None) -> None:
        self.send_response(status)
        for name, value in (headers or {}).items():
            self.send_header(name, value)
        if status != 304:
            self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        """Write no access log, because tests do not read it."""
