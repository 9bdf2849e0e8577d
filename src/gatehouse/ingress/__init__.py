"""The gateway's HTTP side: requests and server-sent events to and from the engine, on the platform and on the outpost.

front           chooses the HTTP protocol class by the setting INGRESS: `lane` or uvicorn's
lane            an HTTP/1.1 protocol for the gateway's paths; it passes all other requests to uvicorn's protocol
protocol        uvicorn's protocol with time limits, lingering close and notification of disconnects
gateway         which requests are the gateway's, and how each is answered: one decoded body in, an answer out
answers         sends an answer to the client through any server
receive         the parts of a request's head that the gateway and administration read, and its body
in_progress     counts model calls in progress
models          `GET /v1/models`
not_served      the error for model API paths that Gatehouse does not serve
figures         the gateway's metrics
openapi         the gateway's paths in the OpenAPI document
sandbox_server  the sandbox provider as a server of its own
"""
