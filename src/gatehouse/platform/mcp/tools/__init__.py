"""Tools of MCP servers. Their definitions are pinned (docs/mcp.md).

    quarantined -> approved      the administrator has read this definition
    quarantined -> rejected
    approved    -> rejected
    rejected    -> approved
    any         -> quarantined   the server has changed the definition, or the server's URL was changed

A tool that the server does not list any more is missing, in any of these states, until the server lists it again.
"""
