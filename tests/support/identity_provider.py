"""An identity provider as a process. It accepts only signed requests, and signs in the person that the test sets.

python -m tests.support.identity_provider      prints its address and certificate as a line of JSON

POST /trust {"metadata": url}      the service provider whose requests it answers
POST /person {"email", ...}        the person who signs in next: fields of `saml.AssertionFields`
POST /rotate                       uses a new key from now on; the answer is its certificate
GET  /sso                          accepts a signed request; the answer is a page whose form is submitted automatically
GET  /slo                          logout requests and answers
GET  /leave?name_id=               starts a logout
GET  /left                         the names in the logout requests that it has received
"""

import asyncio
import html
import json
import sys
import urllib.request
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, urlsplit

import httpx2
from lxml import etree
from tests.support import saml
from tests.support.saml import NS, AssertionFields, Signer


class _State:
    signer = Signer.new()
    person: dict[str, Any] = {}  # noqa: RUF012
    entity_id = ""
    gatehouse_url = ""
    certificates: list[str] = []  # noqa: RUF012
    acs = ""
    slo = ""
    left: list[str] = []  # noqa: RUF012


class _Handler(BaseHTTPRequestHandler):
    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers.get("Content-Length") or 0)) or b"{}")
        if self.path == "/trust":
            _trust(body["metadata"])
        elif self.path == "/person":
            _State.person = body
        elif self.path == "/rotate":
            _State.signer = Signer.new()
        self._say(200, json.dumps({"certificate": _State.signer.certificate}))

    def do_GET(self) -> None:
        path = urlsplit(self.path).path
        query = {name: values[0] for name, values in parse_qs(urlsplit(self.path).query).items()}
        if path == "/sso":
            self._sign_in(query)
        elif path == "/slo":
            self._leave_or_left(query)
        elif path == "/leave":
            request = saml.logout_request(_State.entity_id, _State.gatehouse_url, name_id=query["name_id"])
            self._send_to(f"{_State.slo}?{saml.redirect_query('SAMLRequest', request, _State.signer)}")
        else:
            self._say(200, json.dumps(_State.left))

    def _sign_in(self, query: dict[str, str]) -> None:
        request = saml.message_in_url(self.path, "SAMLRequest", _State.certificates)
        assert request.get("AssertionConsumerServiceURL") == _State.acs
        assert request.get("Destination") == f"{_State.entity_id}/sso"
        text = AssertionFields(
            issuer=_State.entity_id,
            gatehouse_url=_State.gatehouse_url,
            in_response_to=request.get("ID"),
            **_State.person,
        )
        fields = {"SAMLResponse": saml.encoded(saml.signed(text, _State.signer, message_too=True))}
        if "RelayState" in query:
            fields["RelayState"] = query["RelayState"]
        inputs = "".join(f'<input type="hidden" name="{n}" value="{html.escape(v)}">' for n, v in fields.items())
        form = f'<form method="post" action="{html.escape(_State.acs)}">{inputs}</form>'
        self._say(200, f"<!doctype html>{form}<script>document.forms[0].submit()</script>", "text/html")

    def _leave_or_left(self, query: dict[str, str]) -> None:
        if "SAMLResponse" in query:
            saml.message_in_url(self.path, "SAMLResponse", _State.certificates)
            self._say(200, "signed out")
            return
        request = saml.message_in_url(self.path, "SAMLRequest", _State.certificates)
        _State.left.append(request.findtext("saml:NameID", namespaces=NS))
        answer = saml.logout_response(_State.entity_id, _State.gatehouse_url, in_response_to=request.get("ID"))
        self._send_to(f"{_State.slo}?{saml.redirect_query('SAMLResponse', answer, _State.signer)}")

    def _send_to(self, url: str) -> None:
        self.send_response(302)
        self.send_header("Location", url)
        self.end_headers()

    def _say(self, status: int, text: str, media_type: str = "text/plain") -> None:
        self.send_response(status)
        self.send_header("Content-Type", media_type)
        self.send_header("Content-Length", str(len(text.encode())))
        self.end_headers()
        self.wfile.write(text.encode())

    def log_message(self, format: str, *args: Any) -> None:
        pass


def _trust(metadata_url: str) -> None:
    with urllib.request.urlopen(metadata_url) as answer:
        described = etree.fromstring(answer.read())
    _State.gatehouse_url = metadata_url.removesuffix("/api/saml/metadata")
    _State.certificates = [
        "".join((item.text or "").split()) for item in described.iterfind(".//ds:X509Certificate", NS)
    ]
    _State.acs = described.find(".//md:AssertionConsumerService", NS).get("Location")
    _State.slo = described.find(".//md:SingleLogoutService", NS).get("Location")


def main() -> None:
    server = ThreadingHTTPServer(("127.0.0.1", 0), _Handler)
    _State.entity_id = f"http://127.0.0.1:{server.server_port}"
    print(json.dumps({"url": _State.entity_id, "certificate": _State.signer.certificate}), flush=True)  # noqa: T201
    server.serve_forever()


class IdentityProvider:
    """Starts and controls the process. Its entity id is its address."""

    def __init__(self, url: str, certificate: str) -> None:
        self.url = url
        self.certificate = certificate
        self._client = httpx2.AsyncClient(base_url=url)

    @property
    def config(self) -> dict[str, Any]:
        """Return the settings that an administrator enters."""
        return {
            "name": "a test's",
            "entity_id": self.url,
            "sso_url": f"{self.url}/sso",
            "slo_url": f"{self.url}/slo",
            "x509_cert": self.certificate,
        }

    async def trust(self, gatehouse_url: str) -> None:
        await self._client.post("/trust", json={"metadata": f"{gatehouse_url}/api/saml/metadata"})

    async def next(self, **fields: Any) -> None:
        await self._client.post("/person", json=fields)

    async def rotate(self) -> str:
        self.certificate = (await self._client.post("/rotate", json={})).json()["certificate"]
        return self.certificate

    async def left(self) -> list[str]:
        results: list[str] = (await self._client.get("/left")).json()
        return results


@asynccontextmanager
async def identity_provider() -> AsyncIterator[IdentityProvider]:
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "tests.support.identity_provider", stdout=asyncio.subprocess.PIPE
    )
    try:
        assert process.stdout is not None
        body = json.loads(await process.stdout.readline())
        yield IdentityProvider(body["url"], body["certificate"])
    finally:
        process.kill()
        await process.wait()


if __name__ == "__main__":
    main()
