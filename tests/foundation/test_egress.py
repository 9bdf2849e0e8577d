import contextlib
import socket

import aiohttp
import pytest
from aiohttp import web
from hypothesis import given
from hypothesis import strategies as st

from gatehouse.foundation.egress.guard import (
    BlockedAddress,
    EgressGuard,
    GuardedResolver,
    HostNotFound,
    MalformedUrl,
    SafeUrl,
    UnsafeUrl,
)
from gatehouse.foundation.settings import BadSettings

GUARD = EgressGuard()


@pytest.mark.parametrize(
    ("url", "normal"),
    [
        ("https://hooks.example.com/a/b?c=d", "https://hooks.example.com/a/b?c=d"),
        ("https://HOOKS.Example.COM", "https://hooks.example.com/"),
        ("https://example.com.:8443/x#part", "https://example.com:8443/x"),
        ("https://bücher.example/", "https://xn--bcher-kva.example/"),
        ("https://93.184.216.34/", "https://93.184.216.34/"),
        ("https://[2606:2800:220:1::1]:444/x", "https://[2606:2800:220:1::1]:444/x"),
        ("https://my_host.example/", "https://my_host.example/"),
        ("https://1.example/", "https://1.example/"),
    ],
)
def test_a_public_url_is_accepted_and_normalized(url, normal):
    assert str(GUARD.check(url)) == normal


@pytest.mark.parametrize(
    "url",
    [
        "",
        "https://",
        "https:///x",
        "//example.com/",
        "example.com",
        "http://example.com/",
        "ftp://example.com/",
        "file:///etc/passwd",
        "javascript:alert(1)",
        "https://user:pass@example.com/",
        "https://example.com@127.0.0.1/",
        "https://@example.com/",
        "https://example.com:0/",
        "https://example.com:99999/",
        "https://example.com:x/",
        "https://exa mple.com/",
        "https://example.com/\r\nX-Evil: 1",
        "https://example.com\\@127.0.0.1/",
        "https://example.com/\x00",
        "https://exam\u200bple.com/",
        "https://a..b/",
        "https://-a.example/",
        "https://a%2eb/",
        "https://exa/mple.com:/x\ud800",
        "https://[::1/",
        "https://[fe80::1%25eth0]/",
        "https://" + "a" * 64 + ".com/",
        "https://" + "a." * 200 + "com/",
        "https://example.com/" + "x" * 3000,
        "https://2130706433/",
        "https://0x7f000001/",
        "https://0x7f.0.0.1/",
        "https://017700000001/",
        "https://0177.0.0.1/",
        "https://127.1/",
        "https://127.0.1/",
        "https://1.2.3.4.5/",
        "https://256.1.1.1/",
        "https://0x/",
        "https://example.0x7f/",
        "https://\uff11\uff12\uff17.1/",
        "https://[2606:2800:220:1::1]x/",
        "https://[2606:2800:220:1::1].example.com/",
        "https://x[2606:2800:220:1::1]/",
    ],
)
def test_a_url_that_parsers_read_differently_is_refused(url):
    with pytest.raises(MalformedUrl) as caught:
        GUARD.check(url)
    assert caught.value.status == 400
    assert caught.value.text.startswith("url: ")


INSIDE = [
    ("127.0.0.1", "loopback"),
    ("127.255.255.254", "loopback"),
    ("10.0.0.1", "private"),
    ("172.16.0.1", "private"),
    ("172.31.255.255", "private"),
    ("192.168.1.1", "private"),
    ("0.0.0.0", "unspecified"),
    ("0.1.2.3", "private"),
    ("100.64.0.1", "carrier"),
    ("100.127.255.255", "carrier"),
    ("169.254.1.1", "link-local"),
    ("169.254.169.254", "metadata"),
    ("169.254.170.2", "metadata"),
    ("100.100.100.200", "metadata"),
    ("168.63.129.16", "metadata"),
    ("192.0.0.192", "metadata"),
    ("192.0.2.1", "private"),
    ("198.18.0.1", "private"),
    ("192.88.99.1", "reserved"),
    ("224.0.0.1", "multicast"),
    ("239.255.255.255", "multicast"),
    ("240.0.0.1", "reserved"),
    ("255.255.255.255", "reserved"),
    ("[::1]", "loopback"),
    ("[::]", "unspecified"),
    ("[fc00::1]", "private"),
    ("[fd12:3456::1]", "private"),
    ("[fe80::1]", "link-local"),
    ("[fec0::1]", "reserved"),
    ("[ff02::1]", "multicast"),
    ("[fd00:ec2::254]", "metadata"),
    ("[2001:db8::1]", "private"),
    ("[3fff::1]", "reserved"),
    ("[::127.0.0.1]", "reserved"),
    ("[::ffff:0:127.0.0.1]", "reserved"),
    ("[::ffff:127.0.0.1]", "loopback"),
    ("[::ffff:7f00:1]", "loopback"),
    ("[::ffff:169.254.169.254]", "metadata"),
    ("[::ffff:10.0.0.1]", "private"),
    ("[::127.0.0.1]", "reserved"),
    ("[64:ff9b::7f00:1]", "loopback"),
    ("[64:ff9b::a9fe:a9fe]", "metadata"),
    ("[64:ff9b:1::a00:1]", "reserved"),
    ("[2002:7f00:1::]", "reserved"),
    ("[2002:a9fe:a9fe::]", "reserved"),
    ("[2001:0:7f00:1::]", "reserved"),
    ("localhost", "loopback"),
    ("LOCALHOST.", "loopback"),
    ("a.localhost", "loopback"),
    ("metadata.google.internal", "metadata"),
    ("metadata", "metadata"),
    ("\uff11\uff12\uff17.0.0.1", "loopback"),
    ("127\u30020\u30020\u30021", "loopback"),
]


@pytest.mark.parametrize(("host", "reason"), INSIDE)
def test_a_private_address_is_refused_with_the_reason(host, reason):
    with pytest.raises(BlockedAddress) as caught:
        GUARD.check(f"https://{host}/")
    assert reason in caught.value.reason


@pytest.mark.parametrize(
    "url",
    [
        "http://127.0.0.1:11434/v1",
        "http://localhost:11434",
        "http://10.1.2.3/",
        "http://192.168.0.5:8000/v1",
        "http://[::1]:1234/",
        "http://[fd12::1]/",
        "https://api.openai.com/v1",
    ],
)
def test_a_provider_may_be_private(url):
    assert GUARD.provider_url(url).url.rstrip("/") == url.rstrip("/")


@pytest.mark.parametrize(
    "host",
    [
        "169.254.169.254",
        "169.254.0.1",
        "[::ffff:169.254.169.254]",
        "[64:ff9b::a9fe:a9fe]",
        "[2002:a9fe:a9fe::]",
        "[fd00:ec2::254]",
        "168.63.129.16",
        "100.100.100.200",
        "metadata.google.internal",
        "METADATA.google.internal.",
        "224.0.0.1",
    ],
)
def test_a_provider_is_no_metadata_service(host):
    with pytest.raises(BlockedAddress):
        GUARD.provider_url(f"http://{host}/v1")


def test_the_allowlist_permits_a_range_but_never_metadata():
    guard = EgressGuard(["127.0.0.0/8", "169.254.0.0/16", "fd00::/8"])
    assert guard.check("https://127.0.0.1:9/").port == 9
    assert guard.check("https://[::ffff:127.0.0.1]/").port == 443
    assert guard.check("http://169.254.1.1/", https_only=False).port == 80
    for url in ("https://169.254.169.254/", "https://[fd00:ec2::254]/", "https://10.0.0.1/"):
        with pytest.raises(BlockedAddress):
            guard.check(url)


@pytest.mark.parametrize("cidr", ["", "10.0.0.1/8", "all"])
def test_a_bad_range_is_refused_at_start(cidr):
    with pytest.raises(BadSettings, match="EGRESS_ALLOWLIST"):
        EgressGuard([cidr])


@given(st.text(max_size=60))
def test_every_text_is_accepted_or_refused_as_unsafe(text):
    for url in (text, "https://" + text):
        with contextlib.suppress(UnsafeUrl):
            assert isinstance(GUARD.check(url), SafeUrl)


@pytest.fixture
async def lookups(monkeypatch):
    """Replaces the system's resolver, because tests have no name server. Each test sets the addresses of names."""
    answer: list[str] = []

    def getaddrinfo(host, port, **_):
        if not answer:
            raise socket.gaierror
        return [(socket.AF_INET, 1, 6, "", (address, port)) for address in answer]

    monkeypatch.setattr(socket, "getaddrinfo", getaddrinfo)
    return answer


async def test_every_address_of_a_name_is_checked(lookups):
    url = GUARD.check("https://hooks.example.com/")
    lookups[:] = ["93.184.216.34", "2606:2800:220:1::1"]
    assert [str(address) for address in await GUARD.resolve(url)] == ["93.184.216.34", "2606:2800:220:1::1"]
    for inside in ("10.0.0.1", "fe80::1%eth0", "::ffff:127.0.0.1", "169.254.169.254"):
        lookups[:] = ["93.184.216.34", inside]
        with pytest.raises(BlockedAddress):
            await GUARD.resolve(url)


async def test_a_providers_name_may_have_a_private_address_but_no_metadata_address(lookups):
    url = GUARD.provider_url("http://ollama.lan/")
    lookups[:] = ["10.0.0.1"]
    assert len(await GUARD.resolve(url)) == 1
    lookups[:] = ["169.254.169.254"]
    with pytest.raises(BlockedAddress):
        await GUARD.resolve(url)


async def test_a_name_without_an_address_is_reported(lookups):
    with pytest.raises(HostNotFound):
        await GUARD.resolve(GUARD.check("https://nowhere.example/"))


async def test_a_connection_is_made_only_to_permitted_addresses():
    async def hello(_: web.Request) -> web.Response:
        return web.Response(text="hello")

    app = web.Application()
    app.router.add_get("/", hello)
    runner = web.AppRunner(app)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    port = runner.addresses[0][1]
    try:
        for guard, reached in ((EgressGuard(["127.0.0.0/8", "::1/128"]), True), (GUARD, False)):
            connector = aiohttp.TCPConnector(resolver=GuardedResolver(guard))
            async with aiohttp.ClientSession(connector=connector) as session:
                request = session.get(f"http://localhost:{port}/", allow_redirects=False)
                if reached:
                    async with request as answer:
                        assert await answer.text() == "hello"
                else:
                    with pytest.raises(BlockedAddress):
                        await request
    finally:
        await runner.cleanup()
