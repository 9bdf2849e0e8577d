"""The web console: serves the files that `console/` builds (docs/console.md).

    /console                  the application; it answers every path below, because it has its own routes
    /console/shared/{token}   the page of a shared conversation, without a session
    /console/assets/{name}    files whose names contain a hash of their content

The application is a client of the public API. It exchanges the session cookie of the sign-in pages for an access token
(`access.browser`). An installation without the built files shows one plain page instead of the console; everything else
works.
"""
