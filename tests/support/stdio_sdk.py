"""A stdio server of the official MCP SDK: `python stdio_sdk.py`."""

from mcp.server.mcpserver import MCPServer

server = MCPServer("weather", version="3.1", log_level="ERROR")


@server.tool()
def forecast(place: str, days: int = 1) -> str:
    """Returns the forecast for a place."""
    return f"Sunny in {place} for {days} days"


@server.tool()
def customer() -> str:
    """Returns a customer."""
    return "Alice, 4111 1111 1111 1111"


if __name__ == "__main__":
    server.run("stdio")
