"""nginx as a plain reverse proxy, with one worker and persistent upstream connections, without buffering of answers."""

import shutil

from rig.gateways.base import Gateway
from rig.load import Route, Target

CONFIGURATION = """
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
  {tls}
  upstream provider {{ server {upstream}; keepalive 1024; keepalive_requests 1000000000; }}
  server {{
    listen 127.0.0.1:{port} backlog=4096;
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

#: how it checks the certificate of a provider over TLS, as Gatehouse does
TLS = "proxy_ssl_trusted_certificate {authority}; proxy_ssl_verify on; proxy_ssl_name localhost;"


class Nginx(Gateway):
    name = "nginx"

    def command(self) -> list[str]:
        configuration, (scheme, _, address) = self.work / "nginx.conf", self.upstream.partition("://")
        configuration.write_text(
            CONFIGURATION.format(
                work=self.work,
                log=self.log,
                port=self.port,
                scheme=scheme,
                upstream=address,
                tls=TLS.format(authority=self.site.authority) if self.over_tls else "",
            )
        )
        return [shutil.which("nginx") or "nginx", "-p", str(self.work), "-c", str(configuration), "-e", str(self.log)]

    def target(self, route: Route) -> Target:
        return Target(f"http://127.0.0.1:{self.port}{route}/v1/chat/completions")


class NginxTls(Nginx):
    """nginx with a provider over TLS."""

    name = "nginx_tls"
    over_tls = True
