"""Runs the commands of docs/mcp.md one after the other, against a platform that listens and a server of the official
SDK."""

import asyncio
import json
import os
import re
import sys
import textwrap
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest
from tests.platform.mcp.scenarios.test_rules_and_approvals import decide, enable_approvals
from tests.platform.mcp.scenarios.test_tool_runs import Model
from tests.support.mcp_servers import recorded, sdk_server, wait_for_approval
from tests.support.platform import RunningPlatform, Tenant
from tests.support.required_programs import needs
from tests.support.upstream import upstream

PAGE = Path(__file__).parents[4] / "docs/mcp.md"


@pytest.fixture(scope="module")
def weather() -> Iterator[str]:
    with sdk_server("modern") as url:
        yield url


def blocks(section: str, language: str = "bash") -> list[str]:
    """Return the code blocks of a section."""
    (text,) = re.findall(rf"^##+ {section}\n(.*?)(?=^##+ |\Z)", PAGE.read_text("utf-8"), re.MULTILINE | re.DOTALL)
    code = re.findall(rf"^( *)```{language}\n(.*?)^\1```", text, re.MULTILINE | re.DOTALL)
    return [textwrap.dedent(block) for _, block in code]


async def run(*command: str, folder: Path, **variables: str) -> str:
    """Run a program with variables. Return its output."""
    process = await asyncio.create_subprocess_exec(
        *command, cwd=folder, env={**os.environ, **variables},
        stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.PIPE,
    )  # fmt: skip
    output, errors = await asyncio.wait_for(process.communicate(), 120)
    assert process.returncode == 0, (output, errors)
    return output.decode()


async def shell(script: str, folder: Path, variables: Mapping[str, str]) -> str:
    return await run("bash", "-euo", "pipefail", "-c", script, folder=folder, **variables)


async def new_group(tenant: Tenant) -> str:
    """Create a group with the user. Return its id."""
    group: str = (await tenant.admin.client.post("/api/admin/groups", json={"name": "Payments"})).json()["id"]
    path = f"/api/admin/groups/{group}/members"
    answer = await tenant.admin.client.post(path, json={"user_id": str(tenant.user.id)})
    assert answer.status_code in {200, 201}, answer.text
    return group


@needs("jq")
async def test_the_commands_of_the_guide(
    platform: RunningPlatform, tenant: Tenant, weather: str, tmp_path: Path
) -> None:
    register, discover, read, approve, grant = blocks("From a server to a first call")
    (program,) = blocks("From a server to a first call", "python")
    (require_approval,) = blocks("Tools that require an approval")
    permit, ask = blocks("Tools that the gateway runs within model calls")
    register = register.replace("https://weather.example.com/mcp", weather)
    assert weather in register
    key = await platform.new_key(tenant.user)

    async with platform.listening() as base:
        variables = {"BASE": base, "TOKEN": tenant.admin.token, "KEY": key, "GROUP": await new_group(tenant)}
        script = "\n".join([register, discover, read, approve, grant, 'echo "$SERVER $TOOL"'])
        output = await shell(script, tmp_path, variables)
        decoder, values = json.JSONDecoder(), []
        while not re.match(r"[0-9a-f-]{36} [0-9a-f-]{36}$", output := output.strip()):
            value, end = decoder.raw_decode(output)
            values.append(value)
            output = output[end:]
        added, shown, status, rule = values
        assert sorted(added) == ["broken", "customer", "document", "forecast", "note"]
        assert shown["definition"]["description"] == "Returns the forecast for a place."
        assert (status, rule["subject_type"], rule["access_type"]) == ("approved", "group", "ALLOW")
        variables |= dict(zip(("SERVER", "TOOL"), output.split(), strict=True))
        await platform.refresh()

        program = program.replace("https://gateway.example.com", base).replace("gw-...", key)
        assert "Sunny in Oslo for 1 days" in await run(sys.executable, "-c", program, folder=tmp_path)

        await enable_approvals(tenant)
        assert '"approval_required":true' in await shell(require_approval, tmp_path, variables)
        await platform.refresh()
        calling = asyncio.create_task(run(sys.executable, "-c", program, folder=tmp_path))
        await decide(tenant, await wait_for_approval(tenant), "approve")
        assert "Sunny in Oslo for 1 days" in await calling
        assert [event["outcome"] for event in await recorded(platform, tenant)] == ["success", "success"]

        path = f"/api/v1/admin/mcp/servers/{variables['SERVER']}/tools/{variables['TOOL']}"
        assert (await tenant.admin.client.patch(path, json={"approval_required": False})).status_code == 200
        model = Model()
        model.replies = [[("weather__forecast", {"place": "Oslo"})], "Yes, it is sunny."]
        async with upstream(model.behave) as provider:
            await platform.add_provider(
                tenant.id, "openai", "byoe", "gpt-5.2", base_url=f"{provider.url}/v1", format="openai",
                responses_api=True, max_retries=0,
            )  # fmt: skip
            assert '"gateway.mcp"' in await shell(permit, tmp_path, variables)
            await platform.refresh()
            answered = json.loads(await shell(ask, tmp_path, variables))
    assert [item["type"] for item in answered["output"]] == ["mcp_list_tools", "mcp_call", "message"]
    assert answered["output"][1]["output"] == "Sunny in Oslo for 1 days"
    assert answered["output"][2]["content"][0]["text"] == "Yes, it is sunny."
