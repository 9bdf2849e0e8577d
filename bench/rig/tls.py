"""The mock provider over TLS: an nginx on the core of the load, which decrypts and passes on to the mock."""

import shutil
import socket
import subprocess
from pathlib import Path

from rig import processes
from rig.ports import free_port

CONFIGURATION = """
daemon off;
worker_processes 1;
worker_rlimit_nofile 16384;
pid {work}/pid;
error_log {work}/log warn;
events {{ worker_connections 8192; }}
http {{
  access_log off;
  client_body_temp_path {work}/body;
  proxy_temp_path {work}/proxy;
  fastcgi_temp_path {work}/fastcgi;
  uwsgi_temp_path {work}/uwsgi;
  scgi_temp_path {work}/scgi;
  keepalive_requests 1000000000;
  upstream mock {{ server {mock}; keepalive 1024; keepalive_requests 1000000000; }}
  server {{
    listen 127.0.0.1:{port} ssl backlog=4096;
    ssl_certificate {work}/tls.pem;
    ssl_certificate_key {work}/tls.key;
    location / {{
      proxy_pass http://mock;
      proxy_http_version 1.1;
      proxy_set_header Connection "";
      proxy_buffering off;
      proxy_read_timeout 300s;
    }}
  }}
}}
"""


class TlsFront:
    """`url` is the address of the provider over TLS. Its certificate is signed by itself; `authority` is its file."""

    def __init__(self, work: Path, mock: str, *, core: int) -> None:
        self.work = work / "tls-front"
        self.work.mkdir(parents=True)
        self.authority = self.work / "tls.pem"
        port = free_port()
        self.url = f"https://127.0.0.1:{port}"
        _write_certificate(self.authority, self.work / "tls.key")
        configuration = self.work / "nginx.conf"
        configuration.write_text(CONFIGURATION.format(work=self.work, mock=mock.removeprefix("http://"), port=port))
        nginx, log = shutil.which("nginx") or "nginx", self.work / "log"
        command = [nginx, "-p", str(self.work), "-c", str(configuration), "-e", str(log)]
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
