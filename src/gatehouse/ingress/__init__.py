"""The HTTP side of the gateway, on the platform and on the outpost. It passes requests to the engine, and answers and
server-sent events to the client.

protocol_choice  chooses the HTTP protocol class by the setting INGRESS: `http1` or uvicorn's
http1            an HTTP/1.1 protocol for the gateway's paths; it passes all other requests to uvicorn's protocol
protocol         uvicorn's protocol with time limits, lingering close and notification of disconnects
gateway          recognizes the requests to the gateway, and answers them
answers          sends an answer to the client through any server
receive          reads the head of a request
credentials      reads the credential of a request
in_progress      counts model calls in progress
models           answers `GET /v1/models`
not_served       the error for model API paths that Gatehouse does not serve
metrics          the metrics of the gateway
openapi          describes the gateway's paths in the OpenAPI document
sandbox_server   the sandbox provider as a separate server
"""
