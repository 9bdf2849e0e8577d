"""The platform as an OpenID provider: applications sign users in here (OpenID Connect Core; docs/openid.md).

    GET /oauth/authorize    signs the user in if needed, and redirects to the application with a code; a POST form is
                            redirected to the same URL by GET
    POST /oauth/token       the application exchanges the code for tokens (`access.tokens.codes`)
    GET /oauth/userinfo     returns the user's claims for the access token

Only operators' platform-wide clients can sign users in, so there is no consent page. The access token is valid for
`/oauth/userinfo` only, and ends with the session in which the user authorized the client.
"""
