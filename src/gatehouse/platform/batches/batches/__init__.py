"""Batches in OpenAI's form: the calls are in an uploaded file of JSON lines, and the results in files.

The states are in `batches.storage`. Only the owner of a batch, a user or an OAuth client, can see it.
"""
