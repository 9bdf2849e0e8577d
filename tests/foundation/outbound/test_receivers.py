import asyncio
import socket
from collections.abc import AsyncIterator

import pytest
from aiohttp import web
from tests.support.receiver import Receiver, certificate
from tests.support.unsafe_urls import BLOCKED_URLS, MALFORMED_URLS, connecting_nowhere, resolving

from gatehouse.foundation.egress.guard import (
    BlockedAddress,
    EgressGuard,
    MalformedUrl,
    UnsafeUrl,
)
from gatehouse.foundation.outbound.receivers import ReceiverFailed, Receivers


@pytest.fixture
async def receiver() -> AsyncIterator[Receiver]:
    async with Receiver.listening() as listening:
        yield listening


@pytest.fixture
async def receivers(receiver: Receiver) -> AsyncIterator[Receivers]:
    sending = receiver.trusted()
    yield sending
    await sending.close()


@pytest.fixture
async def strict() -> AsyncIterator[Receivers]:
    """Returns receivers whose guard permits only public addresses."""
    sending = Receivers(EgressGuard())
    yield sending
    await sending.close()


async def test_a_request_arrives_and_its_response_is_returned(receiver: Receiver, receivers: Receivers) -> None:
    received = await receivers.post(receiver.url + "hook?a=b", b"{}", {"X-Some": "thing"})
    assert (received.status, received.body, received.taken, received.fault) == (200, "answered 200", True, None)
    assert 0 < received.milliseconds < 10_000
    (request,) = receiver.got
    assert (request.path, request.body, request.headers["X-Some"]) == ("/hook", b"{}", "thing")


async def test_only_a_complete_document_is_returned(receiver: Receiver, receivers: Receivers) -> None:
    receiver.answers.append(web.Response(body=b"x" * 2048))
    assert await receivers.get(receiver.url, max_bytes=2048) == b"x" * 2048
    for answer, reason in (
        (web.Response(body=b"x" * 2049), "larger than 2 KiB"),
        (204, "answered 204"),
        (web.Response(status=301, headers={"Location": receiver.url}), "answered 301"),
        (receiver.silence, r"no answer within 0\.3 s"),
    ):
        receiver.answers.append(answer)
        with pytest.raises(ReceiverFailed, match=reason):
            await receivers.get(receiver.url, max_bytes=2048, seconds=0.3)
    assert len(receiver.got) == 5


async def test_a_document_at_a_private_address_is_not_fetched(strict: Receivers, receiver: Receiver) -> None:
    with pytest.raises(UnsafeUrl):
        await strict.get(receiver.url, max_bytes=2048)
    assert receiver.got == []


@pytest.mark.parametrize(("status", "taken"), [(200, True), (204, True), (299, True), (300, False), (404, False)])
async def test_only_a_2xx_status_is_an_acceptance(
    receiver: Receiver, receivers: Receivers, status: int, taken: bool
) -> None:
    receiver.answers.append(status)
    received = await receivers.post(receiver.url, b"", {})
    assert (received.status, received.taken) == (status, taken)


async def test_a_redirect_is_reported_and_not_followed(receiver: Receiver, receivers: Receivers) -> None:
    receiver.answers.append(web.Response(status=307, headers={"Location": receiver.url + "elsewhere"}))
    received = await receivers.post(receiver.url, b"", {})
    assert (received.taken, received.fault) == (
        False,
        "the receiver answered 307 with a redirect, which is not followed",
    )
    assert [request.path for request in receiver.got] == ["/"]


async def test_the_first_1000_characters_of_a_response_are_returned_without_nul(
    receiver: Receiver, receivers: Receivers
) -> None:
    receiver.answers.append(web.Response(body=("\0" + "ü" * 5000).encode()))
    received = await receivers.post(receiver.url, b"", {})
    assert received.body == "\ufffd" + "ü" * 999


async def test_a_receiver_without_a_response_is_a_timeout(receiver: Receiver, receivers: Receivers) -> None:
    receiver.answers.append(receiver.silence)
    began = asyncio.get_running_loop().time()
    with pytest.raises(ReceiverFailed, match=r"no answer within 0\.3 s"):
        await receivers.post(receiver.url, b"", {}, seconds=0.3)
    assert asyncio.get_running_loop().time() - began < 5


async def test_a_slow_body_does_not_exceed_the_timeout(receiver: Receiver, receivers: Receivers) -> None:
    async def drip(request: web.Request) -> web.StreamResponse:
        response = web.StreamResponse(status=503)
        await response.prepare(request)
        for _ in range(300):
            await response.write(b"x")
            await asyncio.sleep(0.05)
        return response

    receiver.answers.append(drip)
    received = await receivers.post(receiver.url, b"", {}, seconds=0.5)
    assert (received.status, set(received.body)) == (503, {"x"})
    assert 500 <= received.milliseconds < 5000


async def test_a_certificate_of_an_unknown_authority_is_not_trusted(receiver: Receiver) -> None:
    sending = Receivers(EgressGuard(["127.0.0.0/8"]))
    with pytest.raises(ReceiverFailed, match="certificate is not trusted"):
        await sending.post(receiver.url, b"", {})
    await sending.close()
    assert receiver.got == []


async def test_authorities_of_ssl_cert_file_are_trusted(receiver: Receiver, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SSL_CERT_FILE", str(certificate()))
    sending = Receivers(EgressGuard(["127.0.0.0/8"]))
    assert (await sending.post(receiver.url, b"", {})).taken
    await sending.close()


async def test_no_proxy_is_used(receiver: Receiver, receivers: Receivers, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HTTPS_PROXY", "http://127.0.0.1:9")
    assert (await receivers.post(receiver.url, b"", {})).taken


async def test_a_closed_port_is_a_failure(receivers: Receivers) -> None:
    with socket.socket() as nobody:
        nobody.bind(("127.0.0.1", 0))
        with pytest.raises(ReceiverFailed, match="connection could not be made"):
            await receivers.post(f"https://127.0.0.1:{nobody.getsockname()[1]}/", b"", {})


async def test_a_receiver_that_does_not_speak_http_is_a_failure(receivers: Receivers) -> None:
    async def babble(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b"SSH-2.0-OpenSSH_9.9\r\n")
        writer.close()

    async with await asyncio.start_server(babble, "127.0.0.1", 0) as listener:
        with pytest.raises(ReceiverFailed, match="TLS"):
            await receivers.post(f"https://127.0.0.1:{listener.sockets[0].getsockname()[1]}/", b"", {})


@pytest.mark.parametrize("url", [*BLOCKED_URLS, *MALFORMED_URLS])
async def test_an_unsafe_url_is_refused_by_check_and_post(
    strict: Receivers, url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    connecting_nowhere(monkeypatch)
    expected = BlockedAddress if url in BLOCKED_URLS else MalformedUrl
    with pytest.raises(expected):
        await strict.check(url)
    with pytest.raises(expected):
        await strict.post(url, b"", {})


@pytest.mark.parametrize(
    "addresses",
    [["127.0.0.1"], ["10.0.0.1"], ["169.254.169.254"], ["93.184.216.34", "192.168.0.1"], ["::ffff:127.0.0.1"]],
)
async def test_a_name_with_a_blocked_address_is_refused_by_check_and_post(
    strict: Receivers, monkeypatch: pytest.MonkeyPatch, addresses: list[str]
) -> None:
    resolving(monkeypatch, addresses)
    connecting_nowhere(monkeypatch)
    for refused in (strict.check("https://inside.example/"), strict.post("https://inside.example/", b"", {})):
        with pytest.raises(UnsafeUrl):
            await refused


async def test_a_name_that_later_changes_to_a_blocked_address_is_refused(
    strict: Receivers, monkeypatch: pytest.MonkeyPatch
) -> None:
    resolving(monkeypatch, ["93.184.216.34"], ["127.0.0.1"])
    connecting_nowhere(monkeypatch)
    await strict.check("https://rebinding.example/")
    with pytest.raises(BlockedAddress):
        await strict.post("https://rebinding.example/", b"", {})


async def test_the_connection_uses_the_checked_address(
    receiver: Receiver, receivers: Receivers, monkeypatch: pytest.MonkeyPatch
) -> None:
    # A second look-up would return an address that the guard refuses.
    queries = resolving(monkeypatch, ["127.0.0.1"], ["169.254.169.254"])
    port = receiver.url.rpartition(":")[2]
    with pytest.raises(ReceiverFailed, match="certificate"):
        await receivers.post(f"https://rebinding.example:{port}", b"", {})
    assert queries == ["rebinding.example"]


async def test_an_unknown_name_is_accepted_by_check_and_fails_at_delivery(
    strict: Receivers, monkeypatch: pytest.MonkeyPatch
) -> None:
    def unknown(*_: object, **__: object) -> None:
        raise socket.gaierror

    monkeypatch.setattr(socket, "getaddrinfo", unknown)
    assert (await strict.check("https://later.example/hook")).host == "later.example"
    with pytest.raises(ReceiverFailed, match="cannot be resolved"):
        await strict.post("https://later.example/hook", b"", {})
