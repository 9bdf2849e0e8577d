"""Files of batches: uploaded inputs, and results.

    stored -> deleted   DELETE, the end of its lifetime, or the deletion of its owner

Only the owner of a file, a user or an OAuth client, can see it. A file of results has no stored content of its own: it
is read from the results of its batch.
"""
