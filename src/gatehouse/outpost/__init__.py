"""The gateway at the customer's site: the platform's engine, configured by a signed bundle from the platform. It serves
requests while the platform is unreachable, and uploads its records once the platform is back. See docs/outposts.md.

    settings      environment variables of an outpost, in addition to those of every host
    kept          small files under `GATEHOUSE_HOME/outpost` that survive kill -9
    identity      the certificate that the portal issued, and tokens signed with its key
    platform      client of the platform's outpost endpoints
    bundle        the policy bundle in force: verified, compiled, swapped, stored
    follow        long poll for the next bundle
    airgap        bundles from a file, for an outpost without a network connection
    sealed        providers' credentials in the bundle, decrypted
    heartbeat     reports to the portal
    records       the upload position of each record: in the journal, or in the audit log
    audit_log     the audit log's files and the format of its lines
    upload        uploads records to the platform
    export, carried    the audit log as a stream, and its upload from an exported file
    siem          sends events to a SIEM directly
    disk          what is dropped, and in which order, while the disk is nearly full
    budget        enforces the outpost's own monthly budget and the organization's budgets
    tally         amounts spent, on disk
    leases        how peers divide the month's budget
    peers, proof  communication between outposts that share a budget, and its authentication
    credentials, limits, switches, secrets    the engine's ports
    host          all parts of one process, created, started and stopped in order
    app           the proxy as an ASGI application
    serve         `gatehouse serve outpost`
    admin         the administration API on a port of its own
"""
