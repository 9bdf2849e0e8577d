"""Caches of answers by digest, with expiry and bounded size. Both implement `engine.ports.ResponseCache`.

memory      in this process
shared      in Redis, sealed, for all workers
"""
