"""Advice from what was recorded: leases, attempts, backoff, workers, and how long the backlog will last."""
