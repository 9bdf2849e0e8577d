"""The gateway's front door: HTTP and server-sent events to and from the engine, on the platform and on the outpost.

front           what takes requests off the wire, by the setting INGRESS: `lane`, or uvicorn
lane            the gateway's paths on a protocol of our own; everything else goes on to uvicorn's
protocol        uvicorn's protocol, with what it lacks
gateway         which requests are the gateway's, and how each is answered: one decoded body in, an answer out
answers         an answer on its way to the client, whoever carries it
receive         what the gateway and administration read of a request's head, and its body
sandbox_server  the sandbox provider as an upstream of its own
"""
