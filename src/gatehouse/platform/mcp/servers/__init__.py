"""MCP servers of an organization (docs/mcp.md).

    registered -> refreshed    its revision and tools are known; only then can it be called
    any        -> disabled     not callable until it is enabled
    any        -> removed      with its tools and access rules

The kill switch is independent of these states.
"""
