"""Background work: queued jobs, and tasks that a response does not wait for."""
