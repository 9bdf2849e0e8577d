"""The cloud portal: organizations, their members and tokens, and what of them the platform has to know (reference 2,
Cloud portal).

    settings, installation, migrations   where it runs, and its database
    app, api, openapi, errors            the application: a line a family, one error form
    front, callers, limits, standing     who calls, and whether they still may
    requests, change                     what a route gets: a session bound to one organization, a change to make
    signing                              the keys of its tokens
    jobs, work, platform                 what has to reach the platform, sooner or later
    host                                 one process's parts

A family has the platform's form: `routes`, `schemas`, `service`, `table`, and where needed `errors` and `jobs`.
"""
