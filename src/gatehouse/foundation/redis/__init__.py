"""Redis for the request path.

line        one pipelined connection
kept        such a connection for as long as there is one, behind a circuit
"""
