"""Caches of answers by the digest of their requests. Entries expire, and the size is bounded. Both caches implement
`engine.ports.ResponseCache`.

memory      in this process
shared      in Redis, encrypted, for all workers
"""
