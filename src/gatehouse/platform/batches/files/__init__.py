"""Files of batches: uploaded inputs, and results.

    stored -> deleted   DELETE, the end of its lifetime, or the deletion of its owner

Only its owner can see a file: the user, or the OAuth client. The content of a file of results is the stored results of
its batch.
"""
