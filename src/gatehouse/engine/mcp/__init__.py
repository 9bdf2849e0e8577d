"""Tool calls over the Model Context Protocol (docs/mcp.md).

messages, headers, errors   the protocol: JSON-RPC messages, HTTP headers, errors
definitions                 definitions of tools: validation, hash, differences
serving, listing, calling   the gateway as a server: requests of agents
upstream, sessions          the gateway as a client: requests to MCP servers
discovery                   the revision and the tools of a server
recording                   the record of a call
"""
