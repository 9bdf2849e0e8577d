"""The deployable at the customer's: the platform's engine, fed by the signed bundle that the platform sends (decisions
9). It answers also while the platform is away, and hands its records in when it is back.

    settings      what the environment says, beside what every host reads
    kept          small files under `GATEHOUSE_HOME/outpost` that survive kill -9
    identity      the certificate that the portal has issued, and tokens that prove it
    platform      the platform's three calls that an outpost makes
    bundle        the bundle in force: verified, compiled, swapped, kept
    follow        asks the platform for the next one
    airgap        takes it from a file instead
    sealed        providers' credentials that come with it
    heartbeat     tells the portal that this outpost is there
    records       where each record is: in the journal, or in the audit log
    audit_log     the audit log's files, and an entry as a line of it
    upload        hands records in
    export, carried    the audit log as a stream, and brought to the platform by hand
    siem          tells a SIEM of requests, straight from here
    disk          what a full disk costs, and in which order
    budget        what may be spent here: the own month, and the organization's budgets
    tally         what is spent, on disk
    leases        how the month is divided among peers
    peers, proof  the others, and how they know each other
    credentials, limits, switches, secrets    the engine's ports
    host          all parts of one process, made, started and stopped in order
    app           the proxy as an ASGI application
    serve         `gatehouse serve outpost`
    admin         the administration API on a port of its own
"""
