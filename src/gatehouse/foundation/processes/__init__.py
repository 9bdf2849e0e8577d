"""Processes: checks before the start, children, the listening port and memory."""
