"""Maintenance: an operator closes the platform, and opens it again (reference 3, Maintenance mode).

    off -> on     new requests get 503 on every path, model calls in progress on all workers are waited for
    on  -> off    requests come in again

The state is in the database, so it survives restarts. Probes, sign-in and the way to end it stay open.
"""
