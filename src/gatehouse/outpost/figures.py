"""Every figure that an outpost publishes at `/metrics`: the gateway's, and its own."""

from pathlib import Path

from gatehouse.ingress.figures import GatewayFigures, highest


class OutpostFigures(GatewayFigures):
    """One outpost's."""

    def __init__(self, home: Path) -> None:
        self.policy_version = highest("service_outpost_policy_version", "Version of the bundle in force.")
        self.policy_age = highest("service_outpost_policy_age_seconds", "Since the bundle in force was issued.")
        self.platform_silence = highest("service_outpost_platform_silence_seconds", "Since the platform last answered.")
        super().__init__(home / "outpost")
