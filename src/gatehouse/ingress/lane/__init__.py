"""The gateway's paths on an asyncio protocol of our own, on the port that it shares with everything else.

| | |
|---|---|
| `connection` | one connection: whose turn it is, what waits, and its clock |
| `head` | a request's head: judged by the parser, then taken apart |
| `framing` | where a body ends |
| `turn` | one request of the gateway's: its body as it comes, and its answer on the way |
| `answer` | the head of an answer as bytes |
| `behind` | what the gateway does not answer, handed on to uvicorn's protocol |
"""
