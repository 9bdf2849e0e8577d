"""Gatehouse: an AI gateway with an administration API, in three deployables (platform, portal, outpost)."""

__version__ = "0.1.0"
