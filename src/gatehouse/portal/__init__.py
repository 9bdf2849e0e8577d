"""The cloud portal: organizations, their members and tokens, and what the platform needs to know of them
(docs/portal.md).

    settings, installation, migrations   configuration, and the database with its schema
    server                               the application, its duties, its process
    request, identity, change            who calls, parameters of routes, a change in one transaction
    keys                                 the keys of tokens, and the authorities of outposts' certificates
    jobs, platform_link                  queued work at the platform, retried until it succeeds
    host                                 one process's parts

A family has the platform's form: `routes`, `schemas`, `service`, `table`, and where needed `errors` and `jobs`.
"""
