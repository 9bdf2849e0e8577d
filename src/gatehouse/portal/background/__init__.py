"""The portal's background work: queued jobs and periodic duties."""
