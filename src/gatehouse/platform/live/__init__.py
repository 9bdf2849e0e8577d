"""Live state: data that every worker keeps in memory and that must not wait for a policy compile.

    state     the replica: credentials, kill switches, maintenance, provider health, by key
    queries   the cross-tenant queries that load it, completely at the start and by key later
    feed      follows the revisions, applies them to the replica, and confirms them
    nodes     the list of workers with their confirmed revisions, and waiting for them

A change names a topic and a key (`Change.touch`). The topic's loader reads the row of that key again, and removes the
entry if the row is deleted. Memory is never written back, so an old value cannot return.
"""
