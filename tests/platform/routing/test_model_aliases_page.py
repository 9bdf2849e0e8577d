"""Runs the commands of docs/deployments.md one after the other, against a platform that listens."""

import asyncio
import json
import re
from pathlib import Path

from tests.platform.routing.conftest import FakeProvider
from tests.support.journal import Journal
from tests.support.platform import RunningPlatform, Tenant

PAGE = Path(__file__).parents[3] / "docs/deployments.md"
BLOCKS = re.findall(r"^```bash\n(.*?)^```", PAGE.read_text("utf-8"), re.MULTILINE | re.DOTALL)


async def run(script: str, base: str, token: str) -> str:
    environment = {"PATH": "/usr/local/bin:/usr/bin:/bin", "BASE": base, "TOKEN": token}
    process = await asyncio.create_subprocess_exec(
        "bash", "-euo", "pipefail", "-c", script, env=environment,
        stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.PIPE,
    )  # fmt: skip
    output, errors = await process.communicate()
    assert process.returncode == 0, (output, errors)
    return output.decode()


async def test_the_commands_of_the_page(platform: RunningPlatform, tenant: Tenant, fake: FakeProvider) -> None:
    admin = tenant.admin.client
    for provider in ("east", "west"):
        body = {"base_url": f"{fake.url}/v1", "api_key": f"sk-of-the-page-{provider}"}
        assert (await admin.put(f"/api/admin/providers/{provider}/credentials", json=body)).status_code == 200
        entry = {"provider": provider, "model_id": "small", "cost_per_input_token": 0.001, "cost_per_output_token": 0}
        assert (await admin.post("/api/admin/models/catalog/", json=entry)).status_code == 201
    credentials = "/api/admin/providers/openai/credentials"
    assert (await admin.put(credentials, json={"api_key": "sk-of-the-page-1"})).status_code == 200
    assert (await admin.post(credentials, json={"label": "second", "api_key": "sk-of-the-page-2"})).status_code == 201
    entry = {"provider": "openai", "model_id": "gpt-4o-mini"}
    assert (await admin.post("/api/admin/models/catalog/", json=entry)).status_code == 201
    alias, keys, comparison, usage, shadow = BLOCKS

    async with platform.listening() as base:
        created = await run(alias, base, tenant.admin.token)
        answered = re.search(r"x-gateway-provider: (east|west)", created, re.IGNORECASE)
        assert answered is not None
        await Journal(platform.installed.url, platform.host.settings.gatehouse_home / "journal").drain()
        assert '"credential":"second"' in await run(keys, base, tenant.admin.token)
        compared = json.loads(await run(comparison, base, tenant.admin.token))
        requests = {entry["provider"]: entry["requests"] for entry in compared["deployments"]}
        assert requests == {"east": 0, "west": 0, answered[1]: 1}
        decoder = json.JSONDecoder()
        output = await run(usage, base, tenant.admin.token)
        series, end = decoder.raw_decode(output)
        assert [(part["provider"], part["requests"]) for part in series["parts"]] == [(answered[1], 1)]
        assert [(entry["model_alias"], entry["pct"]) for entry in decoder.decode(output[end:])] == [("fast", 100)]
        # The last block uses a variable of the third one.
        changed = await run(f"{comparison.partition('curl -s $BASE')[0]}\n{shadow}", base, tenant.admin.token)
        assert '"role":"shadow"' in changed
