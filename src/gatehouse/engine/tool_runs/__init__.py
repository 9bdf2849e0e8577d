"""Runs tools of MCP servers within a model call (docs/mcp.md).

A client names a registered server in `tools`. The gateway gives the server's tools to the model as functions, calls
those that the model chooses, and sends the results to the model, until the model answers with a text. Each step is a
separate model call. Every model call and every call of a tool passes all checks and has its own record.
"""
