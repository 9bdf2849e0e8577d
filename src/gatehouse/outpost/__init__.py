"""The deployable at the customer's: the platform's engine, fed by the signed bundle that the platform sends (decisions
9). It answers also while the platform is away, and hands its records in when it is back.

    settings      what the environment says, beside what every host reads
    kept          small files under `GATEHOUSE_HOME/outpost` that survive kill -9
    identity      the certificate that the portal has issued, and tokens that prove it
    platform      the platform's three calls that an outpost makes
    bundle        the bundle in force: verified, compiled, swapped, kept
    follow        asks the platform for the next one
    credentials, limits, switches, secrets    the engine's ports
    host          all parts of one process, made, started and stopped in order
    app           the proxy as an ASGI application
    serve         `gatehouse serve outpost`
    admin         the administration API on a port of its own
"""
