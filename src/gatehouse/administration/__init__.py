"""The common parts of all administration APIs: the application, the HTTP shell, serving, jobs, duties and
re-sealing."""
