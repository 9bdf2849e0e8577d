"""The tools of MCP servers that a person may call, for the console. Agents read them with `tools/list`."""
