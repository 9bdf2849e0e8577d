"""TensorZero's embedded gateway: an HTTP server in Rust that its Python package starts in the same process. Requests
are not recorded, because recording needs ClickHouse."""

import re
from pathlib import Path

from rig.gateways.base import Gateway, Site, executable
from rig.load import Route, Target

_PROGRAM = """
import sys, threading, tensorzero
gateway = tensorzero._start_http_gateway(
    config_file=sys.argv[1], clickhouse_url=None, postgres_url=None, valkey_url=None, async_setup=False
)
print(gateway.base_url, flush=True)
threading.Event().wait()
"""
_GATEWAY = """
[gateway]
observability.enabled = false
disable_pseudonymous_usage_analytics = true
"""
_MODEL = """
[models.{name}]
routing = ["mock"]
[models.{name}.providers.mock]
type = "openai"
model_name = "gpt-4o-mini"
api_base = "{base}"
api_key_location = "env::UPSTREAM_KEY"
"""


class TensorZero(Gateway):
    name = "tensorzero"

    def __init__(self, site: Site) -> None:
        super().__init__(site)
        self._url = ""

    def command(self) -> list[str]:
        configuration = self.work / "tensorzero.toml"
        models = (_MODEL.format(name=route.name.lower(), base=f"{self.site.upstream}{route}/v1") for route in Route)
        configuration.write_text(_GATEWAY + "".join(models))
        return [executable(self.site.env / "tensorzero" / "bin", "python"), "-c", _PROGRAM, str(configuration)]

    def environment(self) -> dict[str, str]:
        return {"UPSTREAM_KEY": "sk-upstream", "RUST_LOG": "error"}

    def _listens(self) -> bool:
        """Return whether the gateway listens. It chooses its port and prints it."""
        result = re.search(r"^http://\S+", Path(self.log).read_text(errors="replace"), re.MULTILINE)
        self._url = result.group() if result else ""
        return bool(result) or not self.alive()

    def target(self, route: Route) -> Target:
        return Target(f"{self._url}/chat/completions", model=f"tensorzero::model_name::{route.name.lower()}")
