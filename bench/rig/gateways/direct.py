"""No gateway: the load is sent directly to the mock provider. The figures are the maximum that the machine allows."""

from rig.gateways.base import Gateway
from rig.load import Route, Target


class Direct(Gateway):
    name = "direct"

    def start(self) -> None:
        """Do nothing, because the mock already runs."""

    def processes(self) -> dict[str, list[int]]:
        return {"gateway": []}

    def target(self, route: Route) -> Target:
        return Target(f"{self.site.upstream}{route}/v1/chat/completions")
