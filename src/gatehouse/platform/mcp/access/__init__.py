"""Access rules of MCP servers: the groups, users, API keys and OAuth clients that may or may not call tools
(docs/mcp.md).

    created -> changed     PATCH: ALLOW or DENY
            -> deleted     DELETE, or with its server

A DENY in any matching rule wins. A rule stays when its tool or its subject is removed.
"""
