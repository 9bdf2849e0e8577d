"""Portkey's gateway as published on npm, with one process.

If the published version fails for streams, it is started again with a fix of a few lines, and the report mentions this.
A comparison with a gateway that answers with status 500 would be meaningless.
"""

import shutil
from pathlib import Path

from rig import load
from rig.gateways.base import Gateway
from rig.load import Route, Target

PACKAGE = Path("portkey", "node_modules", "@portkey-ai", "gateway", "build", "start-server.js")
PRELOAD = Path(__file__).with_name("portkey_preload")


class Portkey(Gateway):
    name = "portkey"
    _preload: tuple[str, ...] = ("loopback.cjs",)

    def command(self) -> list[str]:
        node = shutil.which("node") or "node"
        preload = [part for name in self._preload for part in ("--require", str(PRELOAD / name))]
        return [node, *preload, str(self.site.env / PACKAGE), f"--port={self.port}", "--headless"]

    def environment(self) -> dict[str, str]:
        return {"NODE_ENV": "production"}

    def start(self) -> None:
        super().start()
        if len(self._preload) > 1:
            return
        try:
            load.probe(self.target(Route.IMMEDIATE), stream=True)
        except load.NoAnswer as error:
            self.remarks.append(f"streams as published: {error}; measured with portkey_preload/streams.cjs")
            self.stop()
            self._preload = ("loopback.cjs", "streams.cjs")
            super().start()

    def target(self, route: Route) -> Target:
        return Target(
            f"http://127.0.0.1:{self.port}/v1/chat/completions",
            headers={
                "Authorization": "Bearer sk-upstream",
                "x-portkey-provider": "openai",
                "x-portkey-custom-host": f"{self.site.upstream}{route}/v1",
            },
        )
