"""The archive: records that are too old for the database, as Parquet files under `ARCHIVE_URL` (docs/retention.md).

The archiver (`archiver`) runs by the schedule of each organization (`jobs`). It archives the records that are older
than the hot window, one file at a time:

    writing      the file is written from the database; its row in `archive_files` was inserted before
    kept         the file was read back and equals the rows of the database; from now on the archive has the records
    removal      the rows are deleted from the database in batches, and never under a legal hold

If the archiver is killed, the next run continues: it deletes a file that was not kept, and removes the remaining rows
of a kept file. Later the files of a month are joined (`joining`), moved to the cold prefix, and deleted (`ageing`).

A kept file has a sealed checkpoint with its digest and, for audit events, the range of the chain that the file
contains. Only the master key opens the checkpoint. So the owner of the database cannot cut off the beginning of the
chain and claim that it is archived, or claim that a file has expired.

When a removed person is forgotten, the files that name this person are rewritten without their data (`forgetting`). The
chain stays valid, because its hashes cover a digest that is kept.
"""
