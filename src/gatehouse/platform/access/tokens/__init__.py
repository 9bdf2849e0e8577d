"""Tokens for machines, and the keys that all tokens are signed with.

    POST /oauth/token             a client's id and secret for an access token (reference 1, Token issuance)
    GET  /.well-known/jwks.json   the public keys, for whoever verifies tokens elsewhere
    rotation                      another key signs from now on (`gatehouse keys rotate`)

A success is not an audit event of its own: it would let a busy client lock its tenant's chain all day. It sets the
client's `last_used`, and each call made with the token is recorded. What fails for a known client is recorded, once a
minute a worker with the number of attempts, so that a flood of guesses leaves a trace and not a flood of rows.
"""
