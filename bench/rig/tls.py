"""The mock provider over TLS: an nginx on the core of the load, which decrypts and passes on to the mock."""

import socket
import subprocess
from pathlib import Path

from rig import nginx, processes
from rig.ports import free_port


class TlsFront:
    """`url` is the address of the provider over TLS. Its certificate is signed by itself; `authority` is its file."""

    def __init__(self, work: Path, mock: str, *, core: int) -> None:
        self.work = work / "tls-front"
        self.work.mkdir(parents=True)
        self.authority = self.work / "tls.pem"
        port = free_port()
        self.url = f"https://127.0.0.1:{port}"
        _write_certificate(self.authority, self.work / "tls.key")
        log = self.work / "log"
        certificate = f"ssl_certificate {self.authority}; ssl_certificate_key {self.work}/tls.key;"
        command = nginx.command(self.work, log, port, mock, server=certificate, listen="ssl")
        self._process = processes.spawn(command, core=core, log=log)
        if not processes.wait_until(lambda: _accepts(port), seconds=10):
            self.stop()
            raise RuntimeError(f"the provider over TLS does not start: {log.read_text()[-400:]}")

    def stop(self) -> None:
        processes.stop(processes.tree(self._process.pid))
        self._process.wait()


def _accepts(port: int) -> bool:
    try:
        socket.create_connection(("127.0.0.1", port), timeout=1).close()
    except OSError:
        return False
    return True


def _write_certificate(certificate: Path, key: Path) -> None:
    """Write a certificate for this machine that is valid for some days, and its key."""
    command = [
        "openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", "5",
        "-subj", "/CN=provider", "-addext", "subjectAltName=DNS:localhost,IP:127.0.0.1",
        "-keyout", str(key), "-out", str(certificate),
    ]  # fmt: skip
    subprocess.run(command, check=True, capture_output=True)
