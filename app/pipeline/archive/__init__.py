"""Moves what finished long ago from the database to a lake, so that a kill at any moment loses and doubles nothing.

1. Lock: one archiver at a time for a database.
2. Recover: prune what an earlier run committed and did not prune; delete files of batches that were never committed.
3. Copy: write the rows of a range of ids that are old enough to the files of a new batch, read those back, compare.
4. Commit: the batch's manifest.
5. Prune: delete from the database exactly what the batch's files hold, in small transactions.
6. Mark the batch as pruned.
"""
