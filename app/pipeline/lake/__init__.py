"""The lake: Parquet files, and a manifest for each batch of them that says what belongs to it.

    LAKE/_leasemq_lake.json                                  what makes the directory a lake, and whose
    LAKE/<table>/batch=<batch>/date=YYYY-MM-DD/*.parquet     rows by the UTC day on which they finished
    LAKE/_manifests/<batch>.json                             the commit: files, sizes, counts, digests
    LAKE/_manifests/<batch>.pruned                           the batch's rows have been taken out of the database

What no manifest lists is not in the lake: readers never open it.
"""

from app.pipeline.lake.batches import commit_batch
from app.pipeline.lake.lake import Lake, create_lake, open_lake

__all__ = ["Lake", "commit_batch", "create_lake", "open_lake"]
