"""An HTTP/1.1 server protocol for the gateway's paths, on the same port as all other paths.

| | |
|---|---|
| `connection` | one connection: the order of its requests, its input buffer and its time limits |
| `head` | a request's head: validated by the parser, then split into fields |
| `framing` | where a body ends |
| `turn` | one request to the gateway: its body as it arrives, and its response |
| `answer` | the head of a response as bytes |
| `behind` | passes all other requests to uvicorn's protocol |
"""
