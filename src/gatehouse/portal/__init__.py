"""The cloud portal: organizations, their members, tokens and outposts, and the changes that it makes at the platform
for them (docs/portal.md).

    settings, installation, migrations   configuration, and the database with its schema
    server                               the application, its duties, its process
    request, identity, change            callers, parameters of routes, a change in one transaction
    keys                                 the keys of tokens, and the authorities of outposts' certificates
    jobs, platform_link                  queued calls of the platform, which are retried until they succeed
    host                                 the parts of one process

A family has the same modules as in the platform: `routes`, `schemas`, `service`, `table`, and where needed `errors` and
`jobs`.
"""
