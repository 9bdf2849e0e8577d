"""Which certificates identify a peer."""

from datetime import timedelta
from pathlib import Path
from uuid import UUID, uuid4

import pytest
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat
from tests.support.outposts import Authority as OwnAuthority

from gatehouse.foundation.certificates.authority import CertificateAuthority
from gatehouse.outpost.identity import OutpostIdentity
from gatehouse.outpost.platform_link.peer_tokens import NoPeer, Proof

ORGANIZATION = str(uuid4())
LIFETIME = timedelta(days=5)


def proof(folder: Path, name: str, authority: CertificateAuthority, organization: str, outpost_id: UUID) -> Proof:
    """Returns the authentication of an outpost whose certificate has the common name `name`."""
    issued = authority.issue(name, organization, lifetime=LIFETIME)
    certificate, key = folder / f"{uuid4()}.pem", folder / f"{uuid4()}.key"
    certificate.write_text(issued.certificate)
    key.write_text(issued.key)
    authorities = folder / "authorities.pem"
    return Proof(outpost_id, OutpostIdentity(outpost_id, certificate, key, authorities), authorities)


@pytest.fixture
def portal() -> tuple[CertificateAuthority, CertificateAuthority]:
    """Returns the portal's authority and its former one. Both are trusted, as is the authority of a stranger."""
    return CertificateAuthority.make("portal", lifetime=LIFETIME), CertificateAuthority.make(
        "portal, before", lifetime=LIFETIME
    )


@pytest.fixture
def stranger(tmp_path: Path, portal: tuple[CertificateAuthority, CertificateAuthority]) -> CertificateAuthority:
    result = CertificateAuthority.make("public", lifetime=LIFETIME)
    (tmp_path / "authorities.pem").write_text("".join(item.pem for item in (*portal, result)))
    return result


def test_outposts_of_one_organization_are_peers_whichever_authority_issued_their_certificates(
    tmp_path: Path, portal: tuple[CertificateAuthority, CertificateAuthority], stranger: CertificateAuthority
) -> None:
    one, other = uuid4(), uuid4()
    ours = proof(tmp_path, str(one), portal[0], ORGANIZATION, one)
    theirs = proof(tmp_path, str(other), portal[1], ORGANIZATION, other)
    assert ours.verified(theirs.token(one)) == other
    assert theirs.verified(ours.token(other)) == one
    # A token is valid for one peer only.
    with pytest.raises(NoPeer):
        ours.verified(theirs.token(uuid4()))


@pytest.mark.parametrize("organization", [str(uuid4()), ORGANIZATION[:-1]])
def test_a_peer_of_another_organization_is_refused(
    tmp_path: Path,
    portal: tuple[CertificateAuthority, CertificateAuthority],
    stranger: CertificateAuthority,
    organization: str,
) -> None:
    one, other = uuid4(), uuid4()
    ours = proof(tmp_path, str(one), portal[0], ORGANIZATION, one)
    theirs = proof(tmp_path, str(other), portal[0], organization, other)
    with pytest.raises(NoPeer):
        ours.verified(theirs.token(one))


def test_a_token_must_name_the_outpost_of_its_certificate(
    tmp_path: Path, portal: tuple[CertificateAuthority, CertificateAuthority], stranger: CertificateAuthority
) -> None:
    one, other = uuid4(), uuid4()
    ours = proof(tmp_path, str(one), portal[0], ORGANIZATION, one)
    for claimed in (one, uuid4()):
        theirs = proof(tmp_path, str(other), portal[0], ORGANIZATION, claimed)
        with pytest.raises(NoPeer):
            ours.verified(theirs.token(one))


def test_certificates_without_an_organization_need_the_same_authority(tmp_path: Path) -> None:
    own, public = OwnAuthority("made by hand"), OwnAuthority("public")
    authorities = tmp_path / "authorities.pem"
    authorities.write_text(own.pem + public.pem)

    def made(authority: OwnAuthority, outpost_id: UUID) -> Proof:
        key = ec.generate_private_key(ec.SECP256R1())
        certificate, private = tmp_path / f"{uuid4()}.pem", tmp_path / f"{uuid4()}.key"
        certificate.write_bytes(authority.issue(key).public_bytes(Encoding.PEM))
        private.write_bytes(key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()))
        return Proof(outpost_id, OutpostIdentity(outpost_id, certificate, private, authorities), authorities)

    one, other = uuid4(), uuid4()
    ours = made(own, one)
    assert ours.verified(made(own, other).token(one)) == other
    with pytest.raises(NoPeer):
        ours.verified(made(public, other).token(one))
