"""The replica: a worker's in-memory copy of callers and switches, and how it follows changes."""
