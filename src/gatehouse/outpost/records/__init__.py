"""The outpost's records: the local audit log, uploads, exports and SIEM forwarding."""
