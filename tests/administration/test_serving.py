"""The server of administration APIs. It runs in a separate process, because it changes settings of the process."""

import json
import subprocess
import sys

PROGRAM = """
import asyncio, gc, json, socket, sys, urllib.request
from gatehouse.administration.serving import TunedServer, server_config
from gatehouse.ingress.protocol import GatewayHttpProtocol

seen = {}

class Server(TunedServer):
    def on_serving(self):
        seen["frozen_before"] = gc.get_freeze_count()

async def app(scope, receive, send):
    await send({"type": "http.response.start", "status": 200, "headers": [(b"content-length", b"0")]})
    await send({"type": "http.response.body", "body": b""})

async def main():
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{listener.getsockname()[1]}"
        server = Server(server_config(app, GatewayHttpProtocol, tls=None, drain_seconds=1, lifespan="off"))
        serving = asyncio.create_task(server.serve([listener]))
        while not server.started:
            await asyncio.sleep(0.01)
        await asyncio.sleep(0)
        answer = await asyncio.to_thread(urllib.request.urlopen, url)
        seen["headers"] = [name.lower() for name in answer.headers]
        seen["frozen"], seen["threshold"] = gc.get_freeze_count(), gc.get_threshold()[0]
        seen["switch_interval"] = sys.getswitchinterval()
        trimming = server._trimming
        seen["trims"] = not trimming.done()
        server.should_exit = True
        await serving
        await asyncio.sleep(0)
        seen["trims_afterwards"] = not trimming.done()

asyncio.run(main())
print(json.dumps(seen))
"""


def test_the_process_is_tuned_while_it_serves() -> None:
    done = subprocess.run([sys.executable, "-c", PROGRAM], capture_output=True, text=True, check=True, timeout=60)
    seen = json.loads(done.stdout)
    assert seen["frozen_before"] == 0
    assert seen["frozen"] > 10_000
    assert (seen["threshold"], seen["switch_interval"]) == (20_000, 0.001)
    assert (seen["trims"], seen["trims_afterwards"]) == (True, False)
    # Answers do not disclose the server's name.
    assert "server" not in seen["headers"]
