"""The platform as an OpenID provider: applications have people sign in here (OpenID Connect Core; decisions 3).

    GET /oauth/authorize    a person comes with an application's request: signed in or not, they go back with a code;
                            a form (POST) is sent on to the same by GET
    POST /oauth/token       the application trades the code in (`access.tokens.codes`)
    GET /oauth/userinfo     who the person is, for the access token that it got

Only operators' platform-wide clients take part, so nobody is asked whether they agree. The access token opens nothing
but `/oauth/userinfo`, and ends with the session in which the person came.
"""
