"""nginx as a plain reverse proxy (`rig.nginx`)."""

from rig import nginx
from rig.gateways.base import Gateway
from rig.load import Route, Target

#: how it checks the certificate of a provider over TLS, as Gatehouse does
TLS = "proxy_ssl_trusted_certificate {authority}; proxy_ssl_verify on; proxy_ssl_name localhost;"


class Nginx(Gateway):
    name = "nginx"

    def command(self) -> list[str]:
        http = TLS.format(authority=self.site.authority) if self.over_tls else ""
        return nginx.command(self.work, self.log, self.port, self.upstream, http=http)

    def target(self, route: Route) -> Target:
        return Target(f"http://127.0.0.1:{self.port}{route}/v1/chat/completions")


class NginxTls(Nginx):
    """nginx with a provider over TLS."""

    name = "nginx_tls"
    over_tls = True
