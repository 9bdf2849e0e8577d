"""The gateway at the customer's site: the platform's engine, configured by a signed bundle from the platform. It serves
requests while the platform is unreachable, and uploads its records when the platform is reachable again. See
docs/outposts.md.

    policy         the active bundle, the long poll for the next one, bundles from a file, credentials, switches
    platform_link  the client of the platform, heartbeats to the portal, peers and their tokens
    money          the outpost's budgets, leases between peers, spent amounts on disk
    records        the upload, the audit log and its export, direct SIEM events, thinning on a full disk
    admin          the administration API on a port of its own
    settings       environment variables of an outpost, in addition to those of every host
    durable_files  small files under `GATEHOUSE_HOME/outpost` that survive kill -9
    identity       the certificate that the portal issued, and tokens that are signed with its key
    state          the operator's settings: overrides, kill switch, budget
    rate_limits    the rate limits of the proxy
    metrics        the outpost's metrics
    detection      the process of the model tiers
    host           creates, starts and stops all parts of one process
    app            the proxy as an ASGI application
    serve          `gatehouse serve outpost`
"""
