"""LeaseMQ: a durable, leased task queue as an HTTP service over a SQL database."""
