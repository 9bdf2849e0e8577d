"""Batches in OpenAI's form: a file of JSON lines, and files of results.

The states are in `batches.storage`. Only its owner can see a batch: the user, or the OAuth client.
"""
