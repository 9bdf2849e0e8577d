"""MCP servers over stdio: processes on this machine that run commands of the operator (docs/mcp.md).

    client     a worker's side: sends messages to the owner of the processes over a Unix socket
    owner      the process that owns all servers of this machine (`python -m gatehouse.engine.mcp.stdio`)
    pool       which servers run, how many, and for how long
    server     one server: its messages, within bounds
    authentication   of workers and the owner to each other
    starting   how a host starts the owner
    launcher   the parent of one server: sets its limits, measures it, and kills all of its descendants

Workers do not start servers themselves, because they must not block, and because several workers use the same server.
"""
