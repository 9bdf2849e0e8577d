"""Signed tokens and documents: RS256 alone, by keys with an id, published as a key set (decisions 3).

`verify` believes nothing in a token's header but its key id: the algorithm is fixed, and keys that a token brings along
(`jwk`, `jku`, `x5c`) are not looked at.
"""

import json
import time
from collections.abc import Iterable, Mapping
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
_MAX_TOKEN_CHARS: Final = 8192
#: Clocks of machines differ by a little.
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
    """`kid` is the key's thumbprint (RFC 7638)."""

    kid: str
    key: RSAKey = field(repr=False)

    @classmethod
    def generate(cls) -> "SigningKey":
        return cls._of(RSAKey.generate_key(_KEY_BITS, private=True))

    @classmethod
    def from_pem(cls, pem: bytes) -> "SigningKey":
        """Raises `ValueError` for anything but an RSA key of 2048 bits or more."""
        try:
            key = RSAKey.import_key(pem)
        except (JoseError, TypeError) as error:
            raise ValueError("not an RSA key in PEM") from error
        if key.public_key.key_size < _KEY_BITS:
            raise ValueError(f"an RSA key needs {_KEY_BITS} bits")
        return cls._of(key)

    @classmethod
    def from_jwk(cls, published: Mapping[str, Any]) -> "SigningKey":
        """A key of somebody's key set, which verifies and cannot sign. Raises `ValueError` for any but an RSA key."""
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
        """PKCS 8, unencrypted: seal it before it is stored."""
        return self.key.as_pem(private=True)

    def public_pem(self) -> bytes:
        return self.key.as_pem(private=False)

    def published(self) -> dict[str, Any]:
        """The public half as a JWK."""
        return {**self.key.as_dict(private=False), "kid": self.kid, "use": "sig", "alg": ALGORITHM}


def key_set(keys: Iterable[SigningKey]) -> dict[str, Any]:
    """What `/.well-known/jwks.json` answers: keys in use, and those whose tokens still live."""
    return {"keys": [key.published() for key in keys]}


def sign(claims: Mapping[str, Any], key: SigningKey) -> str:
    """`claims` should hold `iss`, `aud`, `iat` and `exp`, or `verify` will refuse the token."""
    return jwt.encode({"alg": ALGORITHM, "kid": key.kid}, dict(claims), key.key, algorithms=[ALGORITHM])


class _Documents(jws.JWSRegistry):
    max_payload_length = 256 * 1024 * 1024


def sign_document(document: bytes, key: SigningKey, *, kind: str) -> str:
    """Any bytes, signed (RFC 7515, compact). `kind` is the header's `typ`: of what is signed with one key, nothing can
    be taken for another (RFC 8725, 3.11)."""
    header = {"alg": ALGORITHM, "kid": key.kid, "typ": kind}
    return jws.serialize_compact(header, document, key.key, registry=_Documents(algorithms=[ALGORITHM]))


def verify_document(signed: str, keys_by_kid: Mapping[str, SigningKey], *, kind: str) -> bytes:
    """Raises `UnknownKey`, `InvalidToken`."""
    key_of = partial(_named, keys_by_kid)
    try:
        found = jws.deserialize_compact(signed, key_of, registry=_Documents(algorithms=[ALGORITHM]))
    except (JoseError, ValueError, TypeError, RecursionError):
        raise InvalidToken from None
    if found.headers().get("typ") != kind:
        raise InvalidToken
    return found.payload


def _named(keys_by_kid: Mapping[str, SigningKey], signature: GuestProtocol) -> RSAKey:
    kid = signature.headers().get("kid")
    known = keys_by_kid.get(kid) if isinstance(kid, str) else None
    if known is None:
        raise UnknownKey
    return known.key


class _OnceEach(json.JSONDecoder):
    """Of two claims with one name readers differ in which they believe (RFC 7519, 4): so neither is."""

    def __init__(self) -> None:
        super().__init__(object_pairs_hook=_once_each)


def _once_each(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    claims = dict(pairs)
    if len(claims) != len(pairs):
        raise ValueError("a name comes twice")
    return claims


def verify(
    token: str,
    keys_by_kid: Mapping[str, SigningKey],
    *,
    issuer: str,
    audience: str,
    now: float | None = None,
) -> dict[str, Any]:
    """The claims of a token that is good at `now` (Unix time; the system's without it).

    `exp`, `iat`, `iss` and `aud` must be there and right. Raises `ExpiredToken`, `UnknownKey`, `InvalidToken`.
    Costs an RSA verification: callers keep what they have verified until `exp`.
    """
    if len(token) > _MAX_TOKEN_CHARS:
        raise InvalidToken
    rules = JWTClaimsRegistry(
        now=int(time.time() if now is None else now),
        leeway=_LEEWAY_SECONDS,
        iss={"essential": True, "value": issuer},
        aud={"essential": True, "value": audience},
        iat={"essential": True},
        exp={"essential": True},
    )
    try:
        verified = jwt.decode(token, partial(_named, keys_by_kid), algorithms=[ALGORITHM], decoder_cls=_OnceEach)
        rules.validate(verified.claims)
    except ExpiredTokenError:
        raise ExpiredToken from None
    except (JoseError, ValueError, TypeError, RecursionError):
        raise InvalidToken from None
    return verified.claims
