"""Live state: data that every worker keeps in memory and that must take effect without a compilation of the policy.

    state     the replica: credentials, kill switches, maintenance and provider health, by key
    queries   the cross-tenant queries that load the replica, completely at the start and by key later
    feed      follows the revisions, applies them to the replica, and confirms them
    nodes     the list of workers with their confirmed revisions, and the wait for confirmations

A change has a topic and a key (`Change.touch`). The loader of the topic reads the row with that key again, and
removes the entry if the row is deleted. Memory is never written back to the database, so an old value cannot return.
"""
