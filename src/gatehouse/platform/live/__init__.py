"""Live state: data that every worker keeps in memory and that must take effect without a compilation of the policy.

    replica   credentials, kill switches, maintenance and provider health by key; the queries that load them, completely
              at the start and by key later; the feed that follows the revisions, and confirms them
    nodes     the list of workers with their confirmed revisions, and the wait for confirmations

A change has a topic and a key (`Change.touch`). The loader of the topic reads the row with that key again, and
removes the entry if the row is deleted. Memory is never written back to the database, so an old value cannot return.
"""
