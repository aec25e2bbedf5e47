"""Everything the queue has done, as data: the only part that knows Spark, and installed with `leasemq[pipeline]`."""
