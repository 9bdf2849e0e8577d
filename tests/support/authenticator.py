"""A security key in software: returns the answers of a browser and its authenticator to WebAuthn options."""

import hashlib
import json
import os
from base64 import urlsafe_b64decode, urlsafe_b64encode
from dataclasses import dataclass, field
from typing import Any

import cbor2
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec

_PRESENT, _VERIFIED, _BACKUP_ELIGIBLE, _ATTESTED = 0x01, 0x04, 0x08, 0x40


def b64(raw: bytes) -> str:
    return urlsafe_b64encode(raw).decode().rstrip("=")


def unb64(text: str) -> bytes:
    return urlsafe_b64decode(text + "=" * (-len(text) % 4))


@dataclass
class Authenticator:
    """One key pair for one site. `origin` is the origin of the page in the browser."""

    origin: str = "http://localhost"
    synced: bool = False
    credential_id: bytes = field(default_factory=lambda: os.urandom(32))
    key: ec.EllipticCurvePrivateKey = field(default_factory=lambda: ec.generate_private_key(ec.SECP256R1()))
    signs: int = 0

    def create(self, options: dict[str, Any]) -> dict[str, Any]:
        """Return the answer of `navigator.credentials.create`."""
        numbers = self.key.public_key().public_numbers()
        public = cbor2.dumps({1: 2, 3: -7, -1: 1, -2: numbers.x.to_bytes(32, "big"), -3: numbers.y.to_bytes(32, "big")})
        attested = bytes(16) + len(self.credential_id).to_bytes(2, "big") + self.credential_id + public
        data = self._data(options["rp"]["id"], _ATTESTED) + attested
        return self._credential(
            clientDataJSON=self._client_data("webauthn.create", options["challenge"]),
            attestationObject=cbor2.dumps({"fmt": "none", "attStmt": {}, "authData": data}),
            transports=["usb", "made-up"],
        )

    def get(self, options: dict[str, Any]) -> dict[str, Any]:
        """Return the answer of `navigator.credentials.get`."""
        self.signs += 1
        client_data = self._client_data("webauthn.get", options["challenge"])
        data = self._data(options["rpId"], 0)
        signature = self.key.sign(data + hashlib.sha256(client_data).digest(), ec.ECDSA(hashes.SHA256()))
        return self._credential(clientDataJSON=client_data, authenticatorData=data, signature=signature)

    def _client_data(self, kind: str, challenge: str) -> bytes:
        return json.dumps({"type": kind, "challenge": challenge, "origin": self.origin}).encode()

    def _data(self, rp_id: str, flags: int) -> bytes:
        flags |= _PRESENT | _VERIFIED | (_BACKUP_ELIGIBLE if self.synced else 0)
        return hashlib.sha256(rp_id.encode()).digest() + bytes([flags]) + self.signs.to_bytes(4, "big")

    def _credential(self, *, transports: list[str] | None = None, **response: bytes) -> dict[str, Any]:
        result: dict[str, Any] = {name: b64(raw) for name, raw in response.items()}
        if transports is not None:
            result["transports"] = transports
        encoded_id = b64(self.credential_id)
        return {
            "id": encoded_id,
            "rawId": encoded_id,
            "type": "public-key",
            "response": result,
            "clientExtensionResults": {},
        }
