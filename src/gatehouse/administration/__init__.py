"""The common parts of all administration APIs: the HTTP shell, changes, jobs and duties."""
