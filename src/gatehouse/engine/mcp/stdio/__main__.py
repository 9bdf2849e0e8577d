"""`python -m gatehouse.engine.mcp.stdio`: the owner of the stdio servers, which the supervisor starts."""

from gatehouse.engine.mcp.stdio.owner import run

run()
