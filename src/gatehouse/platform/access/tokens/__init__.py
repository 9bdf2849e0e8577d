"""Tokens for machines, and the keys that sign all tokens.

    POST /oauth/token             exchanges a client's id and secret for an access token
    GET  /.well-known/jwks.json   publishes the public keys, for verifiers elsewhere
    rotation                      changes the signing key (`gatehouse keys rotate`)

Issuing a token is not an audit event, because a busy client would lock its tenant's chain all day. It sets the client's
`last_used`, and each call with the token is recorded. Failures of existing clients are recorded once a minute for each
worker, with the number of attempts, so that a flood of guesses does not become a flood of rows.
"""
