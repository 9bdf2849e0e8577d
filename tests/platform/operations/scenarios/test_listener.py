"""The real processes of `gatehouse serve platform`: the TLS listener, and metrics of all processes."""

import asyncio
import contextlib
import os
import re
import signal
import socket
import ssl
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import NamedTuple

import httpx2
import openai
import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from tests.support import http_observer
from tests.support.leaks import LEAK_DETECTOR
from tests.support.watched import see_databases

#: In seconds. The counts of a worker's last second are not published yet, and are lost when it is killed.
WRITTEN = 1.3

REQUESTS = re.compile(r'^service_http_requests_total\{method="GET",route="/health",status="200"\} (\S+)$', re.MULTILINE)


class RunningServer(NamedTuple):
    port: int
    certificate: Path
    supervisor: subprocess.Popen[bytes]
    key: str

    def client(self) -> httpx2.Client:
        context = ssl.create_default_context(cafile=str(self.certificate))
        return httpx2.Client(base_url=f"https://localhost:{self.port}", verify=context, timeout=10)


def self_signed(directory: Path) -> tuple[Path, Path]:
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "localhost")])
    now = datetime.now(UTC)
    certificate = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - timedelta(minutes=1))
        .not_valid_after(now + timedelta(days=1))
        .add_extension(x509.SubjectAlternativeName([x509.DNSName("localhost")]), critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .sign(key, hashes.SHA256())
    )
    certificate_path, key_path = directory / "tls.crt", directory / "tls.key"
    certificate_path.write_bytes(certificate.public_bytes(serialization.Encoding.PEM))
    plain = serialization.NoEncryption()
    form = serialization.PrivateFormat.PKCS8
    key_path.write_bytes(key.private_bytes(serialization.Encoding.PEM, form, plain))
    return certificate_path, key_path


@pytest.fixture(scope="module")
def server() -> Iterator[RunningServer]:
    with tempfile.TemporaryDirectory(prefix="gh", dir="/tmp", ignore_cleanup_errors=True) as directory:
        certificate, key = self_signed(Path(directory))
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            port = free.getsockname()[1]
        environment = {
            **os.environ,
            "GATEHOUSE_HOME": f"{directory}/home",
            "TLS_CERT_PATH": str(certificate),
            "TLS_KEY_PATH": str(key),
            "RATE_LIMIT_REQUESTS_PER_MINUTE": "1000000",
        }
        command = [sys.executable, "-P", "-m", "gatehouse", "serve", "platform", "--port", str(port), "--workers", "2"]
        process = subprocess.Popen(command, env=environment, cwd=directory, stdout=subprocess.PIPE)
        try:
            assert process.stdout is not None
            assert f"https://127.0.0.1:{port}".encode() in process.stdout.readline()
            http_observer.register(f"https://localhost:{port}")
            next(line for line in process.stdout if b"trial.key" in line)
            yield RunningServer(port, certificate, process, Path(directory, "home", "trial.key").read_text().strip())
            see_databases(f"postgresql://postgres:@/postgres?host={directory}/home/postgres")
        finally:
            http_observer.unregister(f"https://localhost:{port}")
            process.send_signal(signal.SIGTERM)
            process.wait(30)
        assert process.stdout is not None
        LEAK_DETECTOR.add_text("a server's log", process.stdout.read())


def children(server: RunningServer, word: str) -> list[int]:
    results = []
    for pid in Path(f"/proc/{server.supervisor.pid}/task/{server.supervisor.pid}/children").read_text().split():
        if word.encode() in Path(f"/proc/{pid}/cmdline").read_bytes():
            results.append(int(pid))
    return results


def soon(happens: Callable[[], bool]) -> bool:
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline:
        if happens():
            return True
        time.sleep(0.05)
    return False


def answered(server: RunningServer) -> float:
    # A new connection for each call, so that either worker may answer.
    with server.client() as client:
        match = REQUESTS.search(client.get("/metrics").text)
    return float(match[1]) if match else 0.0


def offered(context: ssl.SSLContext) -> bytes:
    """Return the version in the client's first message, which shows that the refusal is for this version."""
    sent = ssl.MemoryBIO()
    with pytest.raises(ssl.SSLWantReadError):
        context.wrap_bio(ssl.MemoryBIO(), sent).do_handshake()
    return sent.read()[9:11]


@pytest.mark.parametrize("version", [ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3])
def test_tls_1_2_and_newer_are_accepted(server: RunningServer, version: ssl.TLSVersion) -> None:
    context = ssl.create_default_context(cafile=str(server.certificate))
    context.minimum_version = context.maximum_version = version
    plain = socket.create_connection(("localhost", server.port), 5)
    with context.wrap_socket(plain, server_hostname="localhost") as secure:
        secure.sendall(b"GET /health HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n")
        data = secure.recv(1000)
    LEAK_DETECTOR.add_text("answer of GET /health", data)
    assert data.startswith(b"HTTP/1.1 200")


def test_tls_1_1_is_refused(server: RunningServer) -> None:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    # With the default settings, the client would not offer this version.
    context.set_ciphers("ALL:@SECLEVEL=0")
    context.minimum_version = ssl.TLSVersion.TLSv1
    context.maximum_version = ssl.TLSVersion.TLSv1_1
    assert offered(context) == b"\x03\x02"
    plain = socket.create_connection(("localhost", server.port), 5)
    with plain, pytest.raises((ssl.SSLError, ConnectionError)):
        context.wrap_socket(plain, server_hostname="localhost")


@pytest.mark.parametrize("stream", [False, True])
def test_a_standard_client_calls_a_model(server: RunningServer, stream: bool) -> None:
    context = ssl.create_default_context(cafile=str(server.certificate))
    with (
        httpx2.Client(verify=context) as http,
        openai.OpenAI(base_url=f"https://localhost:{server.port}/v1", api_key=server.key, http_client=http) as client,
    ):
        request = client.chat.completions.create(
            model="sandbox/echo", messages=[{"role": "user", "content": "Hello over TLS"}], stream=stream
        )
        if isinstance(request, openai.Stream):
            result = "".join(chunk.choices[0].delta.content or "" for chunk in request if chunk.choices)
        else:
            result = request.choices[0].message.content or ""
    assert "Hello over TLS" in result


async def test_a_client_that_continues_sending_after_a_refusal_can_read_it(server: RunningServer) -> None:
    context = ssl.create_default_context(cafile=str(server.certificate))
    reader, writer = await asyncio.open_connection("localhost", server.port, ssl=context)
    writer.write(b"POST /v1/messages HTTP/1.1\r\nhost: localhost\r\ncontent-length: 99999999\r\n\r\n")
    for _ in range(10):
        writer.write(b" " * 1000)
        await asyncio.sleep(0.05)
    async with asyncio.timeout(60):
        assert (await reader.readline()).startswith(b"HTTP/1.1 401")
        # The rest of the answer arrives. Then the connection ends, because it can serve no further request.
        with contextlib.suppress(ConnectionError):
            while await reader.read(65536):
                writer.write(b" ")
        writer.close()


def test_plain_http_gets_no_answer(server: RunningServer) -> None:
    with pytest.raises(httpx2.TransportError):
        httpx2.get(f"http://localhost:{server.port}/health")


def test_metrics_cover_all_workers_and_include_those_of_a_killed_one(server: RunningServer) -> None:
    time.sleep(WRITTEN)
    before = answered(server)
    for _ in range(20):
        with server.client() as client:
            assert client.get("/health").status_code == 200
    assert soon(lambda: answered(server) == before + 20)
    time.sleep(WRITTEN)
    gateways = children(server, "gatehouse: gateway")
    assert len(gateways) == 2
    os.kill(gateways[0], signal.SIGKILL)
    assert soon(lambda: len(set(children(server, "gatehouse: gateway")) - {gateways[0]}) == 2)
    assert soon(lambda: answered(server) == before + 20)
