"""Tokens and documents that are signed with RS256. Keys have ids and are published as a key set.

`verify` reads only the key id from a token's header. The algorithm is fixed, and keys in the header (`jwk`, `jku`,
`x5c`) are ignored.
"""

import json
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Final

from joserfc import jws, jwt
from joserfc.errors import ExpiredTokenError, JoseError
from joserfc.jwk import GuestProtocol, RSAKey
from joserfc.jwt import JWTClaimsRegistry

from gatehouse.foundation.errors import Unauthenticated

ALGORITHM: Final = "RS256"
_KEY_BITS: Final = 2048
_MAX_TOKEN_CHARACTERS: Final = 8192
#: allowed difference between the clocks of two machines
_LEEWAY_SECONDS: Final = 5


class InvalidToken(Unauthenticated):
    code = "invalid_token"
    message = "The token is not valid."


class ExpiredToken(InvalidToken):
    code = "token_expired"
    message = "The token has expired."


class UnknownKey(InvalidToken):
    code = "unknown_key"
    message = "The token is signed by a key that is not published."


@dataclass(frozen=True)
class SigningKey:
    """An RSA key. `kid` is its thumbprint (RFC 7638)."""

    kid: str
    key: RSAKey = field(repr=False)

    @classmethod
    def generate(cls) -> "SigningKey":
        return cls._of(RSAKey.generate_key(_KEY_BITS, private=True))

    @classmethod
    def from_pem(cls, pem: bytes) -> "SigningKey":
        """Returns the private key in a PEM. Raises `ValueError` unless it is an RSA key of at least 2048 bits."""
        try:
            key = RSAKey.import_key(pem)
        except (JoseError, TypeError) as error:
            raise ValueError("not an RSA key in PEM") from error
        if key.public_key.key_size < _KEY_BITS:
            raise ValueError(f"an RSA key needs {_KEY_BITS} bits")
        return cls._of(key)

    @classmethod
    def from_jwk(cls, published: Mapping[str, Any]) -> "SigningKey":
        """Returns the public key of a JWK. It can only verify. Raises `ValueError` unless it is an RSA key of at least
        2048 bits."""
        try:
            key = RSAKey.import_key({name: str(published[name]) for name in ("kty", "n", "e")})
            if key.public_key.key_size < _KEY_BITS:
                raise ValueError(f"an RSA key needs {_KEY_BITS} bits")
        except (JoseError, TypeError, KeyError) as error:
            raise ValueError("not an RSA key") from error
        return cls._of(key)

    @classmethod
    def _of(cls, key: RSAKey) -> "SigningKey":
        return cls(key.thumbprint(), key)

    def private_pem(self) -> bytes:
        """Returns the private key as unencrypted PKCS 8. Seal it before storing it."""
        return self.key.as_pem(private=True)

    def public_pem(self) -> bytes:
        return self.key.as_pem(private=False)

    def published(self) -> dict[str, Any]:
        """Returns the public key as a JWK."""
        return {**self.key.as_dict(private=False), "kid": self.kid, "use": "sig", "alg": ALGORITHM}


def key_set(keys: Iterable[SigningKey]) -> dict[str, Any]:
    """Returns the key set for `/.well-known/jwks.json`. `keys` are the current keys, and former keys whose tokens have
    not expired."""
    return {"keys": [key.published() for key in keys]}


def sign(claims: Mapping[str, Any], key: SigningKey) -> str:
    """Returns a signed token. `claims` should have `iss`, `aud`, `iat` and `exp`, because `verify` requires them."""
    return jwt.encode({"alg": ALGORITHM, "kid": key.kid}, dict(claims), key.key, algorithms=[ALGORITHM])


class _DocumentRegistry(jws.JWSRegistry):
    max_payload_length = 256 * 1024 * 1024


def sign_document(document: bytes, key: SigningKey, *, kind: str) -> str:
    """Returns a signed document in the compact form of RFC 7515. `kind` is the header's `typ`. It prevents a document
    from being used as one of another kind that is signed with the same key (RFC 8725, 3.11)."""
    header = {"alg": ALGORITHM, "kid": key.kid, "typ": kind}
    return jws.serialize_compact(header, document, key.key, registry=_DocumentRegistry(algorithms=[ALGORITHM]))


def verify_document(signed: str, keys_by_kid: Mapping[str, SigningKey], *, kind: str) -> bytes:
    """Returns the content of a signed document. Raises `UnknownKey`, `InvalidToken`."""
    key_of = partial(_key_for, keys_by_kid)
    try:
        document = jws.deserialize_compact(signed, key_of, registry=_DocumentRegistry(algorithms=[ALGORITHM]))
    except (JoseError, ValueError, TypeError, RecursionError):
        raise InvalidToken from None
    if document.headers().get("typ") != kind:
        raise InvalidToken
    return document.payload


def _key_for(keys_by_kid: Mapping[str, SigningKey], signature: GuestProtocol) -> RSAKey:
    kid = signature.headers().get("kid")
    signing_key = keys_by_kid.get(kid) if isinstance(kid, str) else None
    if signing_key is None:
        raise UnknownKey
    return signing_key.key


class _UniqueNamesDecoder(json.JSONDecoder):
    """Refuses duplicate names of claims, because different parsers use different values of them (RFC 7519, 4)."""

    def __init__(self) -> None:
        super().__init__(object_pairs_hook=_unique_names)


def _unique_names(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    claims = dict(pairs)
    if len(claims) != len(pairs):
        raise ValueError("duplicate name")
    return claims


def verify(
    token: str,
    keys_by_kid: Mapping[str, SigningKey],
    *,
    issuer: str,
    audience: str | Sequence[str],
    now: float | None = None,
) -> dict[str, Any]:
    """Returns the claims of a token that is valid at `now` (Unix time; default: the system's clock). Of several
    audiences, the token must name one.

    Requires valid `exp`, `iat`, `iss` and `aud`. Raises `ExpiredToken`, `UnknownKey`, `InvalidToken`. A call costs an
    RSA verification, so callers should cache verified tokens until `exp`.
    """
    if len(token) > _MAX_TOKEN_CHARACTERS:
        raise InvalidToken
    rules = JWTClaimsRegistry(
        now=int(time.time() if now is None else now),
        leeway=_LEEWAY_SECONDS,
        iss={"essential": True, "value": issuer},
        aud={"essential": True, "values": [audience] if isinstance(audience, str) else list(audience)},
        iat={"essential": True},
        exp={"essential": True},
    )
    try:
        verified = jwt.decode(
            token, partial(_key_for, keys_by_kid), algorithms=[ALGORITHM], decoder_cls=_UniqueNamesDecoder
        )
        rules.validate(verified.claims)
    except ExpiredTokenError:
        raise ExpiredToken from None
    except (JoseError, ValueError, TypeError, RecursionError):
        raise InvalidToken from None
    return verified.claims
