/** Lines that connect agents to the MCP path of the gateway. Each reads the API key from `GATEHOUSE_API_KEY`. */

export function programs(url: string, name: string): readonly { name: string; code: string }[] {
  return [
    {
      name: "Claude Code",
      code: `claude mcp add --transport http ${name} ${url} \\
  --header "Authorization: Bearer $GATEHOUSE_API_KEY"`,
    },
    {
      name: "Codex",
      code: `# ~/.codex/config.toml
[mcp_servers.${name}]
url = "${url}"
bearer_token_env_var = "GATEHOUSE_API_KEY"`,
    },
    {
      name: "Python",
      code: `import asyncio
import os

import httpx2
from mcp import Client
from mcp.client.streamable_http import streamable_http_client


async def main():
    headers = {"Authorization": f"Bearer {os.environ['GATEHOUSE_API_KEY']}"}
    async with httpx2.AsyncClient(headers=headers) as http:
        transport = streamable_http_client("${url}", http_client=http)
        async with Client(transport) as agent:
            for tool in (await agent.list_tools()).tools:
                print(tool.name)


asyncio.run(main())`,
    },
  ];
}
