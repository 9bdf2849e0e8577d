"""Batches of model calls and their files (docs/batches.md).

storage          rows, and the encryption of their contents
results          the lines of the results, in the form of the batch's API
running          runs the lines of batches in a worker
creation         validates the lines of a new batch, estimates its cost and stores it
files            `/v1/files`
batches          `/v1/batches`, OpenAI's form
message_batches  `/v1/messages/batches`, Anthropic's form
"""
