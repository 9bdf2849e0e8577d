"""`EGRESS_POLICY` restricts calls to addresses that an organization has set, with both HTTP clients."""

import socket

import pytest
from tests.support.upstream import Connection, upstream

from gatehouse.foundation.egress.guard import EgressGuard
from gatehouse.foundation.outbound import AddressRefused, OutboundRequest


def post(url: str, **changes) -> OutboundRequest:
    return OutboundRequest(**{"method": "POST", "url": url, "headers": {}, "body": b"{}", **changes})


async def answer(connection: Connection) -> None:
    await connection.answer(b"{}")


@pytest.mark.parametrize(
    ("policy", "egress", "passes"),
    [
        ("private", None, True),
        ("private", "private", True),
        ("private", "public", False),
        ("private", "listed", False),
        ("public", None, True),
        ("public", "private", False),
        ("listed", "public", False),
    ],
)
@pytest.mark.parametrize("host", ["127.0.0.1", "localhost"])
async def test_the_stricter_policy_of_deployment_and_organization_applies(make, policy, egress, passes, host):
    async with upstream(answer) as server:
        carrier = make(guard=EgressGuard(policy=policy))
        request = post(server.url.replace("127.0.0.1", host), egress=egress)
        if passes:
            reply = await carrier.send(request)
            assert await reply.read(10) == b"{}"
            await reply.close()
        else:
            with pytest.raises(AddressRefused):
                await carrier.send(request)
            assert server.requests == []


async def test_an_idle_connection_is_not_used_by_calls_under_a_stricter_policy(make):
    async with upstream(answer) as server:
        carrier = make()
        reply = await carrier.send(post(server.url.replace("127.0.0.1", "localhost"), egress="private"))
        await reply.read(10)
        await reply.close()
        with pytest.raises(AddressRefused):
            await carrier.send(post(server.url.replace("127.0.0.1", "localhost"), egress="public"))
    assert len(server.requests) == 1


@pytest.mark.parametrize("policy", ["private", "public", "listed"])
async def test_the_allowlist_permits_addresses_that_the_policy_refuses(make, policy):
    async with upstream(answer) as server:
        carrier = make(guard=EgressGuard(["127.0.0.0/8", "::1/128"], policy))
        reply = await carrier.send(post(server.url.replace("127.0.0.1", "localhost"), egress="private"))
        await reply.close()
        if policy == "listed":
            with pytest.raises(AddressRefused):
                await carrier.send(post("http://10.0.0.1/v1", egress="private"))
            with pytest.raises(AddressRefused):
                await carrier.send(post("http://8.8.8.8/v1", egress="private"))


async def test_a_public_name_that_changes_to_a_private_address_is_refused(make, monkeypatch):
    monkeypatch.setattr(socket, "getaddrinfo", lambda *_, **__: [(2, 1, 6, "", ("10.1.2.3", 80))])
    with pytest.raises(AddressRefused):
        await make().send(post("http://models.example/v1", egress="public"))
