"""From a DataFrame to tasks: rows are enqueued through the HTTP API, in batches, from the executors."""
