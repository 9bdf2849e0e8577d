"""Background work: queued jobs, and tasks for which a response does not wait."""
