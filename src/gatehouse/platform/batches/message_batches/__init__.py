"""Batches in Anthropic's form: the calls are in the body of the creation, and the results are read from the batch.

The states are in `batches.storage`. Only its owner can see a batch: the user, or the OAuth client.
"""
