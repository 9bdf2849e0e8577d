"""The gateway's front door: HTTP and server-sent events to and from the engine, on the platform and on the outpost.

gateway         model calls, on plain ASGI: one decoded body in, bytes or a stream out
receive         what both the gateway and administration read of a request's head
sandbox_server  the sandbox provider as an upstream of its own
"""
