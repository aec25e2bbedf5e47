"""Reading the service's tables: `format("mq")` for Spark, and the same rows as Arrow batches for plain Python."""
