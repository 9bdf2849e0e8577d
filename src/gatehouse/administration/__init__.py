"""What every administration API is made of: the HTTP shell, changes, jobs and duties."""
