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
    own_id, peer_id = uuid4(), uuid4()
    own_proof = proof(tmp_path, str(own_id), portal[0], ORGANIZATION, own_id)
    peer_proof = proof(tmp_path, str(peer_id), portal[1], ORGANIZATION, peer_id)
    assert own_proof.verified(peer_proof.token(own_id)) == peer_id
    assert peer_proof.verified(own_proof.token(peer_id)) == own_id
    # A token is valid for one peer only.
    with pytest.raises(NoPeer):
        own_proof.verified(peer_proof.token(uuid4()))


@pytest.mark.parametrize("organization", [str(uuid4()), ORGANIZATION[:-1]])
def test_a_peer_of_another_organization_is_refused(
    tmp_path: Path,
    portal: tuple[CertificateAuthority, CertificateAuthority],
    stranger: CertificateAuthority,
    organization: str,
) -> None:
    own_id, peer_id = uuid4(), uuid4()
    own_proof = proof(tmp_path, str(own_id), portal[0], ORGANIZATION, own_id)
    peer_proof = proof(tmp_path, str(peer_id), portal[0], organization, peer_id)
    with pytest.raises(NoPeer):
        own_proof.verified(peer_proof.token(own_id))


def test_a_token_must_name_the_outpost_of_its_certificate(
    tmp_path: Path, portal: tuple[CertificateAuthority, CertificateAuthority], stranger: CertificateAuthority
) -> None:
    own_id, peer_id = uuid4(), uuid4()
    own_proof = proof(tmp_path, str(own_id), portal[0], ORGANIZATION, own_id)
    for claimed in (own_id, uuid4()):
        peer_proof = proof(tmp_path, str(peer_id), portal[0], ORGANIZATION, claimed)
        with pytest.raises(NoPeer):
            own_proof.verified(peer_proof.token(own_id))


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

    own_id, peer_id = uuid4(), uuid4()
    own_proof = made(own, own_id)
    assert own_proof.verified(made(own, peer_id).token(own_id)) == peer_id
    with pytest.raises(NoPeer):
        own_proof.verified(made(public, peer_id).token(own_id))
