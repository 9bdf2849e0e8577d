"""Redis for the request path.

line        one pipelined connection
kept        a connection that reconnects in the background, with a circuit breaker
"""
