"""`Outbound` on asyncio protocols and httptools: our own pool, one parser a connection, no timer a call.

| | |
|---|---|
| `outbound` | `LeanOutbound`: one call, from the URL to the head of the answer |
| `route` | where a URL leads: provider or proxy, what connections are shared by, the fixed part of a request's head |
| `head` | a request's head as bytes |
| `pool` | who may call, who waits, which connections are idle |
| `dial`, `names`, `race` | a new connection: look-up, addresses, CONNECT, TLS |
| `connection` | one connection: an answer at a time, taken apart; its clock |
| `answer` | what the head of an answer says of its body, and its headers |
| `reply` | `LeanReply`: a body that is read as fast as its reader reads |
| `inflate` | gzip and deflate, a bounded piece at a time |
"""
