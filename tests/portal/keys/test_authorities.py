"""The portal's authorities, and their rotation (`gatehouse keys rotate-ca`)."""

from datetime import timedelta
from typing import Any
from uuid import UUID

import psycopg
import pytest
from cryptography import x509
from tests.support.portal import RunningPortal

from gatehouse.foundation.certificates import x5c
from gatehouse.foundation.certificates.authority import CertificateAuthority
from gatehouse.foundation.clock import utc_now
from gatehouse.foundation.jwt import InvalidToken
from gatehouse.portal.keys import authorities
from gatehouse.portal.keys.authorities import CERTIFICATE_LIFETIME, MAX_AUTHORITIES, TooManyAuthorities


def rotated(portal: RunningPortal, *, stolen: bool = False) -> UUID:
    with psycopg.connect(portal.installed.owner_url) as connection:
        return authorities.rotate(connection, portal.installed.sealer, stolen=stolen)


async def chain(portal: RunningPortal) -> list[x509.Certificate]:
    _, _, pem = await portal.host.authorities.issuing()
    return x509.load_pem_x509_certificates(pem.encode())


async def test_an_authority_is_created_at_the_first_start_only(apart: RunningPortal) -> None:
    issuing, authority, _ = await apart.host.authorities.issuing()
    assert x5c.parse_authority(authority.pem) == authority.certificate
    with psycopg.connect(apart.installed.owner_url) as connection:
        authorities.ensure(connection, apart.installed.sealer)
    assert (await apart.host.authorities.issuing())[0] == issuing


async def test_after_a_rotation_the_former_authority_is_trusted_until_its_certificates_expire(
    apart: RunningPortal,
) -> None:
    (first,) = await chain(apart)
    issuing = rotated(apart)
    assert (await apart.host.authorities.issuing())[0] == issuing
    second, before = await chain(apart)
    assert (before, second == first) == (first, False)
    ((until,),) = apart.sql("SELECT trusted_until FROM authorities WHERE retired_at IS NOT NULL")
    assert CERTIFICATE_LIFETIME < until - utc_now() <= CERTIFICATE_LIFETIME + timedelta(days=1)
    apart.sql("UPDATE authorities SET trusted_until = now() WHERE retired_at IS NOT NULL")
    assert await chain(apart) == [second]


async def test_certificates_of_a_stolen_authority_are_not_trusted(apart: RunningPortal) -> None:
    _, stolen, _ = await apart.host.authorities.issuing()
    rotated(apart)
    rotated(apart, stolen=True)
    (only,) = await chain(apart)
    rotations = apart.sql("SELECT details FROM audit WHERE action = 'authority.rotated' ORDER BY at")
    assert rotations == [({"stolen": False},), ({"stolen": True},)]
    issued = stolen.issue("an outpost", "an organization", lifetime=CERTIFICATE_LIFETIME)
    root = CertificateAuthority.from_pem(issued.certificate, issued.key.encode())
    token = x5c.sign({"sub": "an outpost", "aud": "here"}, root.key, [root.certificate])
    assert x5c.verify(token, [stolen.certificate], audience="here").subject == "an outpost"
    with pytest.raises(InvalidToken):
        x5c.verify(token, [only], audience="here")


async def test_more_authorities_than_the_platform_accepts_are_refused(apart: RunningPortal) -> None:
    for _ in range(MAX_AUTHORITIES - 1):
        rotated(apart)
    assert len(await chain(apart)) == MAX_AUTHORITIES
    issuing = (await apart.host.authorities.issuing())[0]
    with pytest.raises(TooManyAuthorities, match="8 authorities are trusted"):
        rotated(apart)
    assert (await apart.host.authorities.issuing())[0] == issuing
    rotated(apart, stolen=True)
    assert len(await chain(apart)) == 1


async def test_a_certificate_expires_no_later_than_its_authority() -> None:
    short = CertificateAuthority.make("a short one", lifetime=timedelta(days=1))
    assert short.issue("a", "b", lifetime=CERTIFICATE_LIFETIME).expires_at == short.certificate.not_valid_after_utc


async def test_a_certificate_of_an_outpost_cannot_issue_certificates(apart: RunningPortal) -> None:
    """The holder of a certificate cannot issue others."""
    _, authority, _ = await apart.host.authorities.issuing()
    issued = authority.issue("an outpost", "an organization", lifetime=CERTIFICATE_LIFETIME)
    root = CertificateAuthority.from_pem(issued.certificate, issued.key.encode())
    forged = forge(root)
    token = x5c.sign({"sub": "x", "aud": "here"}, forged.key, [forged.certificate, root.certificate])
    with pytest.raises(InvalidToken):
        x5c.verify(token, [authority.certificate], audience="here")


def forge(root: CertificateAuthority) -> Any:
    issued = root.issue("x", "y", lifetime=timedelta(days=1))
    return CertificateAuthority.from_pem(issued.certificate, issued.key.encode())
