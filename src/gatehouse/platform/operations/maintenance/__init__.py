"""Maintenance mode, which an operator turns on and off (docs/operations.md).

    off -> on     new requests get 503; the call waits for model calls in progress on all workers
    on  -> off    requests are admitted again

The state is stored in the database, so it survives restarts. Probes, sign-in and this endpoint stay available.
"""
