"""Batches in Anthropic's form: the calls are in the body of the creation, and the results are read from the batch.

The states are in `batches.storage`. Only the owner of a batch, a user or an OAuth client, can see it.
"""
