"""The processes of the platform: the supervisor, its workers, and one worker's parts."""
