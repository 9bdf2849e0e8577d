"""URLs that are refused for receivers, a resolver whose answers a test sets, and a function that forbids network
connections (docs/webhooks.md; docs/security.md)."""

import asyncio
import socket
from typing import Any

import pytest

#: URLs of internal addresses, which can be recognized without a look-up.
BLOCKED_URLS = [
    # private
    "https://10.0.0.1/", "https://10.255.255.255/", "https://172.16.0.1/", "https://172.31.255.255/",
    "https://192.168.1.1/", "https://[fc00::1]/", "https://[fd12:3456::1]/",
    # loopback
    "https://127.0.0.1/", "https://127.1.2.3:8443/", "https://localhost/", "https://LOCALHOST./", "https://a.localhost/",
    "https://[::1]/", "https://[0:0:0:0:0:0:0:1]/",
    # link-local
    "https://169.254.1.1/", "https://[fe80::1]/", "https://[febf::1]/",
    # cloud metadata
    "https://169.254.169.254/latest/meta-data/", "https://169.254.170.2/", "https://metadata.google.internal/",
    "https://Metadata.Google.Internal./", "https://metadata/", "https://instance-data/", "https://100.100.100.200/",
    "https://168.63.129.16/", "https://192.0.0.192/", "https://[fd00:ec2::254]/", "https://[fd20:ce::254]/",
    # reserved, unspecified, shared, multicast
    "https://0.0.0.0/", "https://0.1.2.3/", "https://[::]/", "https://100.64.0.1/", "https://192.0.2.1/",
    "https://198.18.0.1/", "https://198.51.100.1/", "https://203.0.113.1/", "https://192.88.99.1/",
    "https://224.0.0.1/", "https://240.0.0.1/", "https://255.255.255.255/", "https://[ff02::1]/", "https://[fec0::1]/",
    "https://[2001:db8::1]/", "https://[3fff::1]/", "https://[100::1]/",
    # IPv4 inside IPv6: mapped, compatible, translated, NAT64, 6to4, Teredo
    "https://[::ffff:127.0.0.1]/", "https://[::ffff:a9fe:a9fe]/", "https://[::ffff:10.0.0.1]/", "https://[::7f00:1]/",
    "https://[::ffff:0:7f00:1]/", "https://[64:ff9b::7f00:1]/", "https://[64:ff9b::a9fe:a9fe]/",
    "https://[64:ff9b:1::7f00:1]/", "https://[2002:7f00:1::]/", "https://[2001:0:7f00:1::]/",
]  # fmt: skip
#: URLs that parsers and resolvers read in different ways.
MALFORMED_URLS = [
    # one number, fewer parts, octal, hexadecimal, other digits
    "https://2130706433/", "https://127.1/", "https://127.0.1/", "https://0/", "https://0177.0.0.1/",
    "https://017700000001/", "https://00000177.0.0.1/", "https://0x7f000001/", "https://0x7f.0.0.1/", "https://0x7f.1/",
    "https://0X7F000001/", "https://127.0.0.0x1/", "https://4294967297/", "https://256.0.0.1/",
    "https://\uff11\uff12\uff17.1/", "https://127\u30020\u30021/",
    # a user name, and text that looks like one
    "https://example.com@127.0.0.1/", "https://user:word@example.com/", "https://@127.0.0.1/",
    "https://example.com\\@127.0.0.1/", "https://127.0.0.1%2f@example.com/", "https://127.0.0.1%40example.com/",
    "https://example.com:443@127.0.0.1:22/", "https://[::1]@example.com/", "https://[2606:2800:220:1::1]x/",
    # characters that are removed, or that end a host
    "https://example.com\t/", "https://exam\nple.com/", "https://example.com\r\nHost:x/", "https://127.0.0.1\u200b/",
    "https://example.com%00.inside/", "https://[fe80::1%25eth0]/", "https://a..b/",
    # another scheme, or none
    "http://example.com/", "ftp://example.com/", "file:///etc/passwd", "gopher://127.0.0.1:6379/_x",
    "//example.com/", "example.com", "https:example.com", "https:///example.com", "https://example.com:0/",
]  # fmt: skip
#: Answers to look-ups of names. Each answer contains an internal address.
INSIDE = [
    ["127.0.0.1"], ["10.0.0.1"], ["169.254.169.254"], ["100.100.100.200"], ["0.0.0.0"], ["::1"], ["fd00:ec2::254"],
    ["fe80::1%eth0"], ["::ffff:127.0.0.1"], ["64:ff9b::a9fe:a9fe"], ["93.184.216.34", "192.168.0.1"],
]  # fmt: skip


def connecting_nowhere(monkeypatch: pytest.MonkeyPatch) -> None:
    """Make network connections fail the test. Local sockets are permitted, because the platform itself uses them."""
    loop = asyncio.get_running_loop()
    connect = loop.sock_connect

    async def nobody(sock: socket.socket, address: Any) -> None:
        if sock.family != socket.AF_UNIX:
            raise AssertionError(f"it connected to {address}")
        await connect(sock, address)

    monkeypatch.setattr(loop, "sock_connect", nobody)


def resolving(monkeypatch: pytest.MonkeyPatch, *answers: list[str]) -> list[str]:
    """Make names resolve to the answers in order, and then always to the last one. Return the list of names that are
    looked up."""
    requests: list[str] = []
    remaining_answers = list(answers)

    def getaddrinfo(host: str, port: int, *_: object, **__: object) -> list[tuple[Any, ...]]:
        requests.append(host)
        addresses = remaining_answers.pop(0) if len(remaining_answers) > 1 else remaining_answers[0]
        return [(socket.AF_INET, socket.SOCK_STREAM, 6, "", (address, port)) for address in addresses]

    monkeypatch.setattr(socket, "getaddrinfo", getaddrinfo)
    return requests
