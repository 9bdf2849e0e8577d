"""Implements `Outbound` with asyncio protocols and httptools. It has its own connection pool, and needs no timer for
each call.

| | |
|---|---|
| `outbound` | `LeanOutbound`: one call, from the URL to the head of the response; encodes the head of the request |
| `route` | the route of a URL: origin, proxy, and the fixed part of a request's head |
| `pool` | the limits of concurrent and waiting calls, and the idle connections |
| `dial`, `names`, `race` | a new connection: look-up, addresses, CONNECT, TLS |
| `connection` | one connection: parses one response at a time and enforces deadlines |
| `answer` | the head of a response: its headers, and the framing of its body |
| `reply` | `LeanReply`: the body, with back-pressure |
| `inflate` | gzip and deflate, in pieces of bounded size |
"""
