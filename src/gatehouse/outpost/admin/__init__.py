"""The outpost's administration API, on a port of its own and with a token of its own (decisions 9)."""
