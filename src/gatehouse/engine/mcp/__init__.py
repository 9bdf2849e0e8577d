"""Tool calls by the Model Context Protocol (docs/mcp.md).

messages, headers, errors   the protocol: JSON-RPC messages, HTTP headers, errors
definitions                 definitions of tools: validation, hash, differences
serving, listing, calling   the side of a server, towards agents
upstream, sessions          the side of a client, towards MCP servers
discovery                   the revision and the tools of a server
recording                   the record of a call
"""
