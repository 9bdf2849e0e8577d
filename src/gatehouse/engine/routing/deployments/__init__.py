"""Deployments of model aliases: their order for a request, and their limits (docs/deployments.md).

order       the order of an alias's deployments, from their shares, loads and latencies
load        the requests and tokens of each deployment in this worker
affinity    the key of a conversation, and the deployment that it stays at
"""
