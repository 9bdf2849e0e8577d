"""nginx as a plain reverse proxy, with one worker and persistent connections, without buffering of answers."""

import shutil
from pathlib import Path

_CONFIGURATION = """
daemon off;
worker_processes 1;
worker_rlimit_nofile 16384;
pid {work}/pid;
error_log {log} warn;
events {{ worker_connections 8192; }}
http {{
  access_log off;
  client_body_temp_path {work}/body;
  proxy_temp_path {work}/proxy;
  fastcgi_temp_path {work}/fastcgi;
  uwsgi_temp_path {work}/uwsgi;
  scgi_temp_path {work}/scgi;
  keepalive_requests 1000000000;
  {http}
  upstream provider {{ server {address}; keepalive 1024; keepalive_requests 1000000000; }}
  server {{
    listen 127.0.0.1:{port} {listen} backlog=4096;
    {server}
    location / {{
      proxy_pass {scheme}://provider;
      proxy_http_version 1.1;
      proxy_set_header Connection "";
      proxy_buffering off;
      proxy_read_timeout 300s;
    }}
  }}
}}
"""


def command(
    work: Path, log: Path, port: int, upstream: str, *, http: str = "", server: str = "", listen: str = ""
) -> list[str]:
    """Write the configuration of a proxy of `upstream`, and return the command that starts it. `http` and `server` are
    further directives of these blocks, `listen` further parameters of the port."""
    scheme, _, address = upstream.partition("://")
    configuration = work / "nginx.conf"
    configuration.write_text(
        _CONFIGURATION.format(
            work=work, log=log, port=port, scheme=scheme, address=address, http=http, server=server, listen=listen
        )
    )
    return [shutil.which("nginx") or "nginx", "-p", str(work), "-c", str(configuration), "-e", str(log)]
