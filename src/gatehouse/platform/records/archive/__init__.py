"""The archive: records too old for the database, as Parquet files under `ARCHIVE_URL` (docs/retention.md).

The archiver (`archiver`, run by each organization's schedule: `jobs`) archives the records older than the hot window,
one file at a time:

    writing      the file is written from the database; its row in `archive_files` is inserted before
    kept         the file was read back and equals the database's rows; from now on the archive has them
    removal      the rows are deleted from the database, in batches, and never under a legal hold

After a kill the next run continues: it deletes a file that was not kept, and removes the remaining rows of a kept one.
Later a month's files are joined (`joining`), moved to the cold prefix, and deleted (`ageing`).

A kept file has a sealed checkpoint with its digest and, for audit events, the range of the chain it contains. Only the
master key opens it, so the owner of the database cannot cut off the chain's beginning and claim that it is archived, or
claim that a file has expired.
When a removed person is forgotten, the files that name them are rewritten without them (`forgetting`). The chain stays
valid, because its hashes cover a digest that is kept.
"""
