"""A portal's certificate authority, and outposts with its certificates."""

from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID, uuid4

import httpx2
from cryptography import x509
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.serialization import Encoding
from cryptography.x509.oid import NameOID
from tests.support.platform import RunningPlatform

from gatehouse.foundation.certificates import x5c

_CA_USAGE = x509.KeyUsage(
    digital_signature=False, content_commitment=False, key_encipherment=False, data_encipherment=False,
    key_agreement=False, key_cert_sign=True, crl_sign=True, encipher_only=False, decipher_only=False,
)  # fmt: skip


def named(name: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])


class Authority:
    """A certificate authority. `days` is the validity of its certificate, and `above` the authority that signed it."""

    def __init__(self, name: str = "a portal", *, days: float = 9, above: "Authority | None" = None) -> None:
        self.key = ec.generate_private_key(ec.SECP256R1())
        now = datetime.now(UTC)
        issuer, signer = (named(name), self.key) if above is None else (above.certificate.subject, above.key)
        self.certificate = (
            x509.CertificateBuilder(
                issuer, named(name), self.key.public_key(), x509.random_serial_number(),
                now - timedelta(days=10), now + timedelta(days=days),
            )
            .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
            .add_extension(_CA_USAGE, critical=True)
            .add_extension(x509.SubjectKeyIdentifier.from_public_key(self.key.public_key()), critical=False)
            .sign(signer, SHA256())
        )  # fmt: skip

    @property
    def pem(self) -> str:
        return self.certificate.public_bytes(Encoding.PEM).decode()

    def issue(self, key: ec.EllipticCurvePrivateKey, *, days: float = 5) -> x509.Certificate:
        now = datetime.now(UTC)
        builder = x509.CertificateBuilder(
            self.certificate.subject, named("an outpost"), key.public_key(), x509.random_serial_number(),
            now - timedelta(days=9), now + timedelta(days=days),
        )  # fmt: skip
        return builder.sign(self.key, SHA256())


@dataclass
class Outpost:
    """An outpost that uses a new token for each call."""

    platform: RunningPlatform
    tenant_id: UUID
    org_id: UUID
    certificate: x509.Certificate
    key: ec.EllipticCurvePrivateKey
    id: UUID = field(default_factory=uuid4)

    def token(self, **claims: Any) -> str:
        named = {"sub": str(self.id), "aud": self.platform.host.issuer, **claims}
        return x5c.sign(named, self.key, [self.certificate])

    @property
    def headers(self) -> dict[str, str]:
        return {"Authorization": f"Bearer {self.token()}"}

    async def bundle(self, known: str = "", wait: int = 0) -> httpx2.Response:
        headers = {**self.headers, **({"If-None-Match": known} if known else {})}
        return await self.platform.anonymous.get("/v1/outposts/policy-bundle", params={"wait": wait}, headers=headers)

    async def hand_in(self, journal_id: UUID, sequence: int, entries: list[Any]) -> httpx2.Response:
        body = {"journal_id": str(journal_id), "sequence": sequence, "entries": entries}
        return await self.platform.anonymous.post("/v1/outposts/records", json=body, headers=self.headers)


@dataclass
class Portal:
    """Sends the trust of all outposts of the tests to the platform, which replaces the trust as a whole."""

    platform: RunningPlatform
    client: httpx2.AsyncClient
    authority: Authority = field(default_factory=Authority)
    outposts: list[Outpost] = field(default_factory=list)

    async def enrol(self, tenant_id: UUID, *, enabled: bool = True) -> Outpost:
        key = ec.generate_private_key(ec.SECP256R1())
        outpost = Outpost(self.platform, tenant_id, uuid4(), self.authority.issue(key), key)
        self.outposts.append(outpost)
        await self.vouch()
        if enabled:
            await self.switch(tenant_id, enabled=True)
        return outpost

    async def vouch(self) -> httpx2.Response:
        answer = await self.client.put("/v1/platform/outpost-trust", json=self.word())
        assert answer.status_code == 200, answer.text
        return answer

    def word(self) -> dict[str, Any]:
        return {
            "ca_certificates": [self.authority.pem],
            "organizations": [
                {"org_id": str(outpost.org_id), "tenant_id": str(outpost.tenant_id)} for outpost in self.outposts
            ],
            "outposts": [
                {
                    "outpost_id": str(outpost.id),
                    "org_id": str(outpost.org_id),
                    "serials": [f"{outpost.certificate.serial_number:x}"],
                }
                for outpost in self.outposts
            ],
        }

    async def switch(self, tenant_id: UUID, *, enabled: bool) -> None:
        """Return the organization's flag from its row."""
        self.platform.sql(
            "UPDATE tenants SET feature_flags = feature_flags || jsonb_build_object('outpost_enabled', %s::boolean)"
            " WHERE id = %s",
            [enabled, tenant_id],
        )
        self.platform.touch("policy", tenant_id)
        await self.platform.refresh()
