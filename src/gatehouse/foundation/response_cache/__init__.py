"""Answers by digest, for a while, in bounded memory: both have the shape of `engine.ports.ResponseCache`.

memory      in this process
shared      in Redis, sealed, for all workers together
"""
