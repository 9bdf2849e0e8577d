"""The outpost's administration API, on a separate port and with a separate token."""
