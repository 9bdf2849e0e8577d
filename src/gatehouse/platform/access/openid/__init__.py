"""The platform as an OpenID provider: applications sign users in here (OpenID Connect Core; docs/openid.md).

    GET /oauth/authorize    signs the user in if needed, and redirects to the application with a code; a POST form is
                            redirected to the same URL by GET
    POST /oauth/token       the application exchanges the code for tokens (`access.tokens.codes`)
    GET /oauth/userinfo     returns the user's claims for the access token

Clients of the user's organization and platform-wide clients can sign the user in. There is no consent page, because an
administrator of the organization or an operator has registered the client. The access token is valid for
`/oauth/userinfo`, and for the API within its API scopes. It ends with the session in which the user authorized the
client.
"""
