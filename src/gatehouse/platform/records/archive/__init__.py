"""The archive: records too old for the database, as Parquet files under `ARCHIVE_URL` (decisions 5, Retention).

The archiver (`archiver`, by each organization's schedule: `jobs`) takes what is past the hot window, a part at a time:

    writing      a file, from the database; `archive_files` knows of it before it exists
    kept         it was read back and holds the database's rows, value by value; from now on the archive has them
    removal      the rows leave the database; a part of them at a time, and never under a legal hold

Whatever is killed in between, the next run goes on there: a file that was not kept is deleted, rows that were not
removed are. Later a month's files become one (`joining`), move to the cold prefix, and go (`ageing`).

A kept file has a sealed checkpoint: its digest, and for audit events where in the chain it begins and ends. It opens
under the master key alone, so whoever owns the database cannot cut the chain's beginning off and call it archived, or
say that a file's time was over.
When a removed person is forgotten, the files that name them are written anew without (`forgetting`); the chain holds,
because its hashes are over a digest that stays.
"""
