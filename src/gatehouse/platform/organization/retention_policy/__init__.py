"""How long an organization's records are kept, and where (reference 2, Retention policy; decisions 5, Retention).

The three windows follow each other: `hot` in the database, then `warm` in the archive, then `cold`. The archiver that
moves records is not in this version: what it would do is stored and validated, and `last_archival_*` are null.
"""
