"""Live state: what every worker keeps in memory because it cannot wait for a compile.

    state     the replica: credentials, kill switches, maintenance, provider health, by key
    queries   the named cross-tenant queries that fill it, whole at start and by key later
    feed      follows the revisions, brings the replica up to each, confirms it
    nodes     which workers there are, what each has confirmed, and waiting for them

Changes name a topic and a key (`Change.touch`); a topic's loader reads that key's row again, or finds it gone.
Nothing is ever written back from memory, so an old value cannot return.
"""
