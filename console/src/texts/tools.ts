/** The texts of the page with the tools that the user may call. */

export const toolTexts = {
  title: "Tools",
  text: "The tools that you may call through MCP. Your API keys may call the same tools, unless a rule limits them.",
  empty: "You may call no tools",
  emptyText: "Ask an administrator for access to an MCP server.",
  connect: "Connect an agent",
  connectText: "The agent reads the API key from the variable GATEHOUSE_API_KEY.",
  toKeys: "API keys",
  server: "Server",
  allServers: "All servers",
  pages: "Pages of tools",
  search: "Search tools",
  noneMatch: "No tool matches",
  noDescription: "No description.",
} as const;
