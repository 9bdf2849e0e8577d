"""The processes of the platform: the supervisor, its workers, and the parts of one worker."""
