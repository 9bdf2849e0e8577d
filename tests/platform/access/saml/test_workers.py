"""Single sign-on with several workers: a response to one worker's request is accepted by any other, but only once."""

import asyncio
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager

import httpx2
import psutil
import pytest
from tests.support import saml
from tests.support.saml import AssertionFields, Signer
from tests.support.server import GatehouseServer

from gatehouse.platform.access.saml.protocol.messages import NAMESPACES

ISSUER = "https://idp.test/saml"


@pytest.fixture(scope="module")
def server() -> Iterator[GatehouseServer]:
    with GatehouseServer(workers=2) as running:
        running.settled()
        yield running


@pytest.fixture(scope="module")
def idp_id(server: GatehouseServer, signer: Signer) -> str:
    body = {"name": "x", "entity_id": ISSUER, "sso_url": "https://idp.test/sso", "x509_cert": signer.certificate}
    headers = {"Authorization": f"Bearer {server.new_key('admin')}"}
    created = httpx2.post(f"{server.url}/api/admin/saml/idp", json=body, headers=headers)
    assert created.status_code == 201, created.text
    created_id: str = created.json()["id"]
    return created_id


@pytest.fixture
async def browser(server: GatehouseServer) -> AsyncIterator[httpx2.AsyncClient]:
    """A browser that does not reuse connections, because a connection always leads to the same worker."""
    limits = httpx2.Limits(max_keepalive_connections=0)
    async with httpx2.AsyncClient(base_url=server.url, limits=limits, timeout=60) as created:
        yield created


@contextmanager
def only(worker: psutil.Process, server: GatehouseServer) -> Iterator[None]:
    """Suspend all other workers, so that only this worker can answer."""
    others = [item for item in server.workers if item.pid != worker.pid]
    assert others
    for other in others:
        other.suspend()
    try:
        yield
    finally:
        for other in others:
            other.resume()


async def start_sign_in(browser: httpx2.AsyncClient, idp_id: str) -> str:
    answer = await browser.get("/api/saml/login", params={"idp_id": idp_id})
    request_id: str = saml.message_in_url(answer.headers["location"], "SAMLRequest").get("ID")
    return request_id


def form(server: GatehouseServer, signer: Signer, request_id: str) -> dict[str, str]:
    ((email,),) = server.sql("SELECT email FROM users WHERE role = 'admin' AND NOT operator")
    # Marks the account as linked to the identity provider.
    server.sql("UPDATE users SET linked_at = now() WHERE email = %s", [email])
    fields = AssertionFields(issuer=ISSUER, gatehouse_url=server.url, in_response_to=request_id, email=email)
    return {"SAMLResponse": saml.encoded(saml.signed(fields, signer))}


async def test_a_response_to_one_workers_request_is_accepted_once_by_any_worker(
    server: GatehouseServer, browser: httpx2.AsyncClient, idp_id: str, signer: Signer
) -> None:
    first, second = server.workers
    with only(first, server):
        answer = form(server, signer, await start_sign_in(browser, idp_id))
    with only(second, server):
        taken = await browser.post("/api/saml/acs", data=answer)
    assert taken.status_code == 303, taken.text
    with only(first, server):
        again = await browser.post("/api/saml/acs", data=answer)
    assert (again.status_code, again.json()["reason"]) == (400, "assertion_expired")


async def test_one_of_many_concurrent_responses_to_all_workers_is_accepted(
    server: GatehouseServer, browser: httpx2.AsyncClient, idp_id: str, signer: Signer
) -> None:
    request_id = await start_sign_in(browser, idp_id)
    answers = [form(server, signer, request_id) for _ in range(12)]
    taken = await asyncio.gather(*(browser.post("/api/saml/acs", data=answer) for answer in answers))
    assert sorted(item.status_code for item in taken) == [303] + [400] * 11


async def test_all_workers_sign_with_the_same_key(server: GatehouseServer, browser: httpx2.AsyncClient) -> None:
    """The first worker that needs the key creates it."""
    results = []
    for worker in server.workers:
        with only(worker, server):
            results.append((await browser.get("/api/saml/metadata")).content)
    assert results[0] == results[1]
    assert len(saml.tree(results[0].decode().partition("?>")[2]).findall(".//ds:X509Certificate", NAMESPACES)) == 1
