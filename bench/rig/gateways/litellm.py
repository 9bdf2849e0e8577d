"""LiteLLM's proxy with one worker, without a database, and with a master key for this run."""

import json
import secrets

from rig.gateways.base import Gateway, Site, executable
from rig.load import Route, Target


class LiteLLM(Gateway):
    name = "litellm"
    patience = 300.0

    def __init__(self, site: Site) -> None:
        super().__init__(site)
        self._key = f"sk-{secrets.token_urlsafe(24)}"

    def command(self) -> list[str]:
        models = [
            {
                "model_name": route.name.lower(),
                "litellm_params": {
                    "model": "openai/gpt-4o-mini",
                    "api_base": f"{self.site.upstream}{route}/v1",
                    "api_key": "sk-upstream",
                },
            }
            for route in Route
        ]
        configuration = self.work / "config.yaml"
        # JSON is valid YAML.
        configuration.write_text(json.dumps({"model_list": models, "litellm_settings": {"telemetry": False}}))
        program = executable(self.site.env / "litellm" / "bin", "litellm")
        serve = ["--host", "127.0.0.1", "--port", str(self.port), "--num_workers", "1"]
        return [program, "--config", str(configuration), *serve]

    def environment(self) -> dict[str, str]:
        return {
            "LITELLM_MASTER_KEY": self._key,
            "LITELLM_MODE": "PRODUCTION",
            "LITELLM_LOG": "ERROR",
            "LITELLM_TELEMETRY": "False",
            # Prices are read from the package, so that the start does not wait for the network.
            "LITELLM_LOCAL_MODEL_COST_MAP": "True",
            "HOME": str(self.work),
        }

    def target(self, route: Route) -> Target:
        return Target(
            f"http://127.0.0.1:{self.port}/v1/chat/completions",
            model=route.name.lower(),
            headers={"Authorization": f"Bearer {self._key}"},
        )
