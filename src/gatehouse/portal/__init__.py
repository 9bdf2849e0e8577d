"""The cloud portal: organizations, their members and tokens, and what the platform needs to know of them
(docs/portal.md).

    settings, installation, migrations   configuration, and the database with its schema
    app, api, openapi, errors            the application: a line a family, one error form
    front, callers, standing             who calls, and whether the credential is still valid
    requests, change                     parameters of routes: a session bound to one organization, a change
    signing                              the keys of its tokens
    jobs, work, platform                 queued work at the platform, retried until it succeeds
    host                                 one process's parts

A family has the platform's form: `routes`, `schemas`, `service`, `table`, and where needed `errors` and `jobs`.
"""
