"""No gateway: the load reaches the mock provider itself. What the machine allows at the most."""

from rig.gateways.base import Gateway
from rig.load import Route, Target


class Direct(Gateway):
    name = "direct"

    def start(self) -> None:
        """The mock runs already."""

    def processes(self) -> dict[str, list[int]]:
        return {"gateway": []}

    def target(self, route: Route) -> Target:
        return Target(f"{self.site.upstream}{route}/v1/chat/completions")
