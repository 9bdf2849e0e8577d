"""An HTTP/1.1 server protocol for the gateway's paths, on the same port as all other paths.

| | |
|---|---|
| `connection` | one connection: the order of its requests, its input buffer and its time limits |
| `head` | parses the head of a request |
| `framing` | finds the end of a body |
| `turn` | one request to the gateway: receives its body, and writes its response |
| `answer` | encodes the head of a response |
| `behind` | passes all other requests to uvicorn's protocol |
"""
