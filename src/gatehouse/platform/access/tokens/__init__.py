"""Tokens for machines, and the keys that sign all tokens.

    POST /oauth/token             exchanges a client's id and secret for an access token
    GET  /.well-known/jwks.json   publishes the public keys, for verifiers outside this platform
    rotation                      changes the signing key (`gatehouse keys rotate`)

Issuing a token is not an audit event, because a busy client would lock its tenant's audit chain too often. It sets the
client's `last_used`, and each call with the token is recorded. Each worker records failures of an existing client at
most once a minute, with the number of attempts, so that a flood of guesses does not become a flood of rows.
"""
