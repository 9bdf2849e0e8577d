"""Runs the examples on the pages in docs/clients: `make agents`, or `make agents ARGS="codex langchain"`.

It installs the newest version of each client from PyPI or npm in a temporary folder, and starts a platform and a
scripted model. Then it runs every way to call the gateway that a client's page shows, once with a provider of each
format, with DLP on. A case passes if the client has run the tool, and the card number is redacted in the tool's result
and in the model's answer. One line is printed for each case. With `--publish`, the results are written to docs/clients.
The exit status is 1 if a case failed.
"""

import argparse
import asyncio
import shutil
import sys
import tempfile
from pathlib import Path
from typing import Final

import httpx2

ROOT: Final = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))

from tests.support.server import ADMIN_EMAIL, ADMIN_PASSWORD, GatehouseServer  # noqa: E402
from tests.support.upstream import Connection, upstream  # noqa: E402

from tools.coding_agents import installing, results, running  # noqa: E402
from tools.coding_agents.clients import CLIENTS, Client  # noqa: E402
from tools.coding_agents.pages import MODELS, Values  # noqa: E402

#: Formats of the provider's API.
FORMATS: Final = ("openai", "anthropic")
#: Length of the end of a failed case's output that is printed.
MAX_SHOWN_CHARACTERS: Final = 3_000


def main() -> None:
    parser = argparse.ArgumentParser(prog="tools.coding_agents", description=__doc__.partition("\n")[0])
    parser.add_argument("clients", nargs="*", choices=[*CLIENTS, []], help="default: all")
    parser.add_argument("--publish", action="store_true", help="write versions and results to docs/clients")
    options = parser.parse_args()
    clients = [CLIENTS[name] for name in options.clients or CLIENTS]
    with tempfile.TemporaryDirectory(prefix="agents") as folder, GatehouseServer() as server:
        passed = asyncio.run(_run(clients, Path(folder), server, publishes=options.publish))
    sys.exit(0 if passed else 1)


async def _run(clients: list[Client], folder: Path, server: GatehouseServer, *, publishes: bool) -> bool:
    """Run the cases of these clients. Return whether all have passed."""
    model = running.scripted(clients[0])

    async def behave(connection: Connection) -> None:
        await model(connection)

    all_passed = True
    async with upstream(behave) as provider:
        key = await asyncio.to_thread(_connect, server, provider.url)
        for client in clients:
            model = running.scripted(client)
            rows = []
            packages = folder / client.name
            environment = installing.install(client, packages)
            version = installing.version(client, packages)
            for index, case in enumerate(client.cases):
                passed = True
                for wire_format in FORMATS:
                    home = folder / f"{client.name}-{index}-{wire_format}"
                    home.mkdir()
                    if (packages / "node_modules").exists():
                        # Node searches for packages in the folder of a program.
                        (home / "node_modules").symlink_to(packages / "node_modules")
                    values = Values(server.url, key, f"scripted-{wire_format}")
                    result = await running.run_case(client, case, values, provider, home, environment)
                    name = f"{client.name} {version}, {' + '.join(case.sections)}, provider with {wire_format} format"
                    print(f"{name}: {', '.join(result.faults) or 'passed'}", flush=True)
                    if result.faults:
                        print(result.output[-MAX_SHOWN_CHARACTERS:], flush=True)
                        passed = False
                rows.append(results.Row(client.name, version, case.api, case.is_streamed, passed))
                all_passed &= passed
            if publishes:
                # Written after each client, so that the results are kept if a later client cannot be installed.
                results.publish(rows)
            shutil.rmtree(packages)
    return all_passed


def _connect(server: GatehouseServer, url: str) -> str:
    """Add a provider for each format, and return an API key."""
    with httpx2.Client(base_url=server.url, timeout=60) as client:
        login = client.post("/api/auth/login", json={"email": ADMIN_EMAIL, "password": ADMIN_PASSWORD})
        client.headers["Authorization"] = f"Bearer {login.raise_for_status().json()['access_token']}"
        models = [
            {
                "model_id": model, "display_name": model, "context_window": 200_000, "input_cost_per_1k": 0.001,
                "output_cost_per_1k": 0.002,
            }
            for model in MODELS
        ]  # fmt: skip
        for wire_format in FORMATS:
            provider = {
                "id": f"scripted-{wire_format}", "name": f"Scripted, {wire_format}", "base_url": f"{url}/v1",
                "format": wire_format, "api_key": "none", "models": models,
            }  # fmt: skip
            client.post("/api/admin/providers/byoe", json=provider).raise_for_status()
        key = client.post("/api/auth/api-keys", json={"description": "clients"}).raise_for_status().json()
    return str(key["api_key"])


if __name__ == "__main__":
    main()
